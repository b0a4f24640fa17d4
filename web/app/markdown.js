/**
 * markdown.js: Markdown to elements. marked (vendor/marked.js) reads the text into tokens; this file makes the elements one
 * by one, with text as text. There is no HTML in between: tags that a model writes are shown as they are written, links
 * lead nowhere but to http, https and mailto, and images are links, because a picture from elsewhere would tell that
 * server what is read.
 */
import { h } from "./dom.js";
import { lexer } from "./vendor/marked.js";

/** @typedef {any} Token of marked */

const SAFE_LINK = /^(https?:|mailto:)/i;
const ENTITIES = /** @type {Record<string, string>} */ ({ "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" });
const plain = (/** @type {string} */ text) => text.replace(/&(amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity]);

/** @param {Token[] | undefined} tokens @returns {any[]} */
const inlines = (tokens) => (tokens ?? []).map(inline);

/** @param {string} href @param {any[]} children */
const link = (href, children) => SAFE_LINK.test(href)
  ? h("a", { href, rel: "noopener noreferrer", target: "_blank" }, children)
  : h("span", {}, children);

/** @param {Token} t @returns {any} */
function inline(t) {
  switch (t.type) {
    case "strong": return h("strong", {}, inlines(t.tokens));
    case "em": return h("em", {}, inlines(t.tokens));
    case "del": return h("del", {}, inlines(t.tokens));
    case "codespan": return h("code", {}, t.text);
    case "br": return h("br");
    case "link": return link(t.href, inlines(t.tokens));
    case "image": return link(t.href, [t.text || t.href]);
    case "checkbox": return h("input", { type: "checkbox", checked: t.checked, disabled: true });
    case "text": return t.tokens ? h("span", {}, inlines(t.tokens)) : plain(t.text);
    case "escape": return t.text;
    default: return t.raw;
  }
}

/** @param {Token} t @returns {any} */
function item(t) {
  const box = t.task && !t.tokens.some((/** @type {Token} */ x) => x.type === "checkbox" || x.tokens?.[0]?.type === "checkbox");
  return h("li", {}, box && h("input", { type: "checkbox", checked: t.checked, disabled: true }), t.tokens.map(block));
}

/** @param {Token} t @returns {any} */
function code(t) {
  const copy = h("button.link", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(t.text);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  return h("div.code", {}, h("div.code-head", {}, h("span", {}, t.lang || "text"), copy),
    h("pre", { tabIndex: 0 }, h("code", {}, t.text)));
}

/** @param {Token} t @returns {any} */
function block(t) {
  switch (t.type) {
    case "paragraph": return h("p", {}, inlines(t.tokens));
    case "heading": return h(`h${Math.min(6, t.depth + 2)}`, {}, inlines(t.tokens)); /* the page has h1 and h2 */
    case "code": return code(t);
    case "blockquote": return h("blockquote", {}, t.tokens.map(block));
    case "list": return h(t.ordered ? "ol" : "ul", t.ordered && t.start !== 1 ? { start: t.start } : {}, t.items.map(item));
    case "hr": return h("hr");
    case "space": return null;
    case "def": return null;
    case "table": return h("div.table", { tabIndex: 0 }, h("table", {},
      h("thead", {}, h("tr", {}, t.header.map((/** @type {Token} */ c) => h("th", {}, inlines(c.tokens))))),
      h("tbody", {}, t.rows.map((/** @type {Token[]} */ row) => h("tr", {}, row.map((c) => h("td", {}, inlines(c.tokens))))))));
    case "html": return h("p", {}, t.raw);
    case "text": return h("span", {}, t.tokens ? inlines(t.tokens) : plain(t.text));
    default: return h("p", {}, t.raw);
  }
}

/** Shows a growing text: blocks that did not change keep their elements, so that a selection in them stays. */
export class MarkdownView {
  /** @type {string[]} */ #raw = [];
  /** @type {(Element | null)[]} */ #made = [];

  /** @param {HTMLElement} element */
  constructor(element) { this.element = element; }

  /** @param {string} text all of it */
  show(text) {
    const tokens = lexer(text, { gfm: true, breaks: true });
    let same = 0;
    while (same < tokens.length && same < this.#raw.length && tokens[same].raw === this.#raw[same]) same++;
    for (const old of this.#made.splice(same)) old?.remove();
    this.#raw = tokens.map((/** @type {Token} */ t) => t.raw);
    for (const token of tokens.slice(same)) {
      const made = block(token);
      this.#made.push(made);
      if (made !== null) this.element.append(made);
    }
  }
}
