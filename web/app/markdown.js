/**
 * markdown.js: Markdown to elements. marked (vendor/marked.js) reads the text into tokens; this file makes the elements one
 * by one, with text as text. There is no HTML in between: tags that a model writes are shown as they are written, links
 * lead nowhere but to http, https and mailto, and images are links, because a picture from elsewhere would tell that
 * server what is read. Reading and drawing nest, and some texts take time that grows faster than they do; so what nests
 * deeper than DEEPEST, and a paragraph longer than LONGEST, is shown as it was written.
 */
import { copyButton, h } from "./dom.js";
import { Lexer } from "./vendor/marked.js";

/** @typedef {any} Token of marked */

const DEEPEST = 12; /* levels of quotes and lists */
const LONGEST = 8000; /* characters of one paragraph, whose emphasis and links are looked for */
const SAFE_LINK = /^(https?:|mailto:)/i;
const MARKER = "(?:>|[-+*]|\\d{1,9}[.)])";
const TOO_DEEP = new RegExp(`^(?:[ \\t]*${MARKER}){${DEEPEST + 1}}|^[ \\t]{${4 * DEEPEST},}${MARKER}`, "m");
const ENTITIES = /** @type {Record<string, string>} */ ({ "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" });
const plain = (/** @type {string} */ text) => text.replace(/&(amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity]);

/** Top-level blocks, and the addresses that references stand for.
 * @param {string} text @returns {{blocks: Token[], addresses: string}} */
function read(text) {
  const asWritten = { blocks: [{ type: "plain", raw: text }], addresses: "" };
  if (TOO_DEEP.test(text)) return asWritten;
  try {
    const lexer = new Lexer({ gfm: true, breaks: true });
    const all = lexer.blockTokens(text.replace(/\r\n?/g, "\n"), lexer.tokens);
    for (const { src, tokens } of lexer.inlineQueue) {
      if (src.length > LONGEST) tokens.push({ type: "plain", raw: src });
      else lexer.inlineTokens(src, tokens);
    }
    return { blocks: all, addresses: JSON.stringify(lexer.tokens.links ?? {}) };
  } catch {
    return asWritten; /* too much for its stack */
  }
}

/** @param {Token[] | undefined} tokens @param {number} depth of what they are in @returns {any[]} */
const inlines = (tokens, depth) => (tokens ?? []).map((t) => (depth < 2 * DEEPEST ? inline(t, depth + 1) : t.raw));
/** @param {Token[]} tokens @param {number} depth @returns {any[]} */
const blocks = (tokens, depth) => tokens.map((t) => (depth < 2 * DEEPEST ? block(t, depth + 1) : h("p", {}, t.raw)));

/** @param {string} href @param {any[]} children */
const link = (href, children) => SAFE_LINK.test(href)
  ? h("a", { href, rel: "noopener noreferrer", target: "_blank" }, children)
  : h("span", {}, children);

/** @param {boolean} checked */
const box = (checked) => h("input", { type: "checkbox", checked, disabled: true, ariaLabel: checked ? "done" : "to do" });

/** @param {Token} t @param {number} depth @returns {any} */
function inline(t, depth) {
  switch (t.type) {
    case "strong": return h("strong", {}, inlines(t.tokens, depth));
    case "em": return h("em", {}, inlines(t.tokens, depth));
    case "del": return h("del", {}, inlines(t.tokens, depth));
    case "codespan": return h("code", {}, t.text);
    case "br": return h("br");
    case "link": return link(t.href, inlines(t.tokens, depth));
    case "image": return link(t.href, [t.text || t.href]);
    case "checkbox": return box(t.checked);
    case "text": return t.tokens ? h("span", {}, inlines(t.tokens, depth)) : plain(t.text);
    case "escape": return t.text;
    default: return t.raw;
  }
}

/** @param {Token} t @param {number} depth @returns {any} */
function item(t, depth) {
  const has = t.tokens.some((/** @type {Token} */ x) => x.type === "checkbox" || x.tokens?.[0]?.type === "checkbox");
  return h("li", {}, t.task && !has && box(t.checked), blocks(t.tokens, depth));
}

/** @param {Token} t @returns {any} */
const code = (t) => h("div.code", {},
  h("div.code-head", {}, h("span", {}, t.lang || "text"), copyButton(() => t.text)),
  h("pre", { tabIndex: 0 }, h("code", {}, t.text)));

/** @param {Token} t @param {number} depth @returns {any} */
function table(t, depth) {
  const row = (/** @type {Token[]} */ cells, /** @type {string} */ tag) =>
    h("tr", {}, cells.map((c) => h(tag, {}, inlines(c.tokens, depth))));
  return h("div.table", { tabIndex: 0 }, h("table", {}, h("thead", {}, row(t.header, "th")),
    h("tbody", {}, t.rows.map((/** @type {Token[]} */ cells) => row(cells, "td")))));
}

/** @param {Token} t @param {number} depth @returns {any} */
function block(t, depth) {
  switch (t.type) {
    case "paragraph": return h("p", {}, inlines(t.tokens, depth));
    case "heading": return h(`h${Math.min(6, t.depth + 2)}`, {}, inlines(t.tokens, depth)); /* the page has h1 and h2 */
    case "code": return code(t);
    case "blockquote": return h("blockquote", {}, blocks(t.tokens, depth));
    case "list": return h(t.ordered ? "ol" : "ul", t.ordered && t.start !== 1 ? { start: t.start } : {},
      t.items.map((/** @type {Token} */ x) => item(x, depth)));
    case "hr": return h("hr");
    case "space": return null;
    case "def": return null;
    case "table": return table(t, depth);
    case "text": return h("span", {}, t.tokens ? inlines(t.tokens, depth) : plain(t.text));
    case "checkbox": return box(t.checked);
    case "plain": return h("p.plain", {}, t.raw);
    default: return h("p", {}, t.raw); /* html: as it is written */
  }
}

/** Shows a growing text: blocks that did not change keep their elements, so that a selection in them stays. */
export class MarkdownView {
  /** @type {string[]} */ #raw = [];
  #addresses = "";
  /** @type {(Element | null)[]} */ #made = [];

  /** @param {HTMLElement} element */
  constructor(element) { this.element = element; }

  /** @param {string} text all of it */
  show(text) {
    const { blocks: tokens, addresses } = read(text);
    let same = 0;
    while (addresses === this.#addresses && same < tokens.length && same < this.#raw.length && tokens[same].raw === this.#raw[same]) same++;
    for (const old of this.#made.splice(same)) old?.remove();
    this.#addresses = addresses;
    this.#raw = tokens.map((t) => t.raw);
    for (const token of tokens.slice(same)) {
      const made = block(token, 0);
      this.#made.push(made);
      if (made !== null) this.element.append(made);
    }
  }
}
