/**
 * chat.js: one conversation on the page: what was said, the answer that is being written, and what can be done with each.
 * The text of an answer grows in its element, at most once a frame; the row of figures comes below it at its end, so that
 * nothing moves while it is read.
 */
import { $, copyButton, grouped, h } from "./dom.js";
import { MarkdownView } from "./markdown.js";

/** @typedef {import("./history.js").Conversation} Conversation
 *  @typedef {import("./history.js").AssistantMessage} AssistantMessage
 *  @typedef {import("./history.js").Stats} Stats
 *  @typedef {{again: (index: number, sameSeed: boolean) => void, edit: (index: number, text: string) => void,
 *    busy: () => boolean}} Actions */

const NEAR_END = 48; /* pixels: a reader who is this close to the end is taken along */

/** @param {number} n */
const shortened = (n) => (n >= 100 ? grouped(Math.round(n)) : n.toFixed(1));

/** @param {Stats} s */
function figures(s) {
  const steps = s.completionTokens - 1;
  const rate = s.decodeMs > 0 && steps > 0 && `${shortened(steps / s.decodeMs * 1000)} tokens/s`;
  const finish = { stop: "finished", length: "stopped at the length limit", cancelled: "stopped by you" }[s.finish] ?? s.finish;
  return [rate, `${grouped(s.completionTokens)} tokens`,
    `prompt ${grouped(s.promptTokens)}` + (s.reusedTokens > 0 ? `, ${grouped(s.reusedTokens)} reused` : ""), finish,
    `seed ${s.seed}`, `model ${s.model.slice(0, 8)}`].filter(Boolean).join(" · ");
}

/** The element of an answer, finished or growing. */
class AnswerView {
  #thought;
  #thoughtText;
  #text;
  #frame = 0;
  #content = "";
  #reasoning = "";
  #note = h("p.wait", { hidden: true });

  constructor() {
    this.#thoughtText = h("div.thought-text");
    this.#thought = h("details.thought", { hidden: true }, h("summary", {}, "Thinking"), this.#thoughtText);
    const body = h("div.prose");
    this.#text = new MarkdownView(body);
    this.body = h("div.body", {}, this.#thought, body, this.#note);
    this.element = h("article.turn.answer", { ariaLabel: "Answer" }, this.body);
  }

  /** What is being waited for; empty: nothing. @param {string} text */
  wait(text) {
    this.#note.textContent = text;
    this.#note.hidden = text === "";
  }

  /** @param {string} content @param {string} reasoning @param {() => void} [shown] after the frame in which it shows */
  show(content, reasoning, shown) {
    this.#content = content;
    this.#reasoning = reasoning;
    if (shown === undefined) return this.#draw();
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
      shown();
    });
  }

  #draw() {
    if (this.#frame !== 0) cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const thought = this.#reasoning.trim();
    this.#thought.hidden = thought === "";
    if (thought !== "" && this.#thoughtText.textContent !== thought) this.#thoughtText.textContent = thought;
    this.#text.show(this.#reasoning === "" ? this.#content : this.#content.replace(/^\n+/, ""));
  }
}

export class ChatView {
  #log = $("log");
  #actions;
  /** @type {Conversation | null} */ #conversation = null;

  /** @param {Actions} actions */
  constructor(actions) { this.#actions = actions; }

  /** @param {Conversation} conversation */
  show(conversation) {
    this.#conversation = conversation;
    this.#log.replaceChildren();
    if (conversation.messages.length === 0) this.#log.append(this.#welcome());
    conversation.messages.forEach((m, i) => {
      if (m.role === "user") this.#log.append(this.#question(m.content, i));
      else this.#log.append(this.#finished(m, i));
    });
    this.toEnd();
  }

  #welcome() {
    return h("div.welcome", {},
      h("h2", {}, "A language model in this tab"),
      h("p", {}, "It computes on your own processor. What you write is sent nowhere, and it answers without a network. ",
        "The same question with the same seed has the same answer, to the last bit, on every machine."),
      h("p.small", { id: "welcome-model" }),
      h("ul.starters", {}, ["What is the capital of France?", "What is 7 plus 5?", "Tell me a story.", "What is slm2?"]
        .map((text) => h("li", {}, h("button", { type: "button", onclick: () => this.#start(text) }, text)))));
  }

  /** @param {string} text */
  #start(text) {
    const prompt = /** @type {HTMLTextAreaElement} */ ($("prompt"));
    prompt.value = text;
    /** @type {HTMLFormElement} */ ($("composer")).requestSubmit();
  }

  /** @param {string} content @param {number} index */
  #question(content, index) {
    const edit = h("button.link", { type: "button" }, "Edit");
    const turn = h("article.turn.question", { ariaLabel: "You" }, h("p.said", {}, content), h("div.row.tools", {}, edit));
    edit.addEventListener("click", () => {
      if (this.#actions.busy()) return;
      const rows = Math.min(12, content.split("\n").length + 1);
      const field = h("textarea", { value: content, rows, ariaLabel: "Your message, edited" });
      const back = () => {
        const again = this.#question(content, index);
        turn.replaceWith(again);
        again.querySelector("button").focus();
      };
      const send = () => this.#actions.edit(index, field.value);
      field.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
        if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
          e.preventDefault();
          send();
        } else if (e.key === "Escape") back();
      });
      turn.replaceChildren(field, h("div.row.tools", {},
        h("button.primary", { type: "button", onclick: send }, "Send again"),
        h("button", { type: "button", onclick: back }, "Cancel"),
        h("span.small", {}, "What follows it is replaced.")));
      field.focus();
    });
    return turn;
  }

  /** @param {AssistantMessage} m @param {number} index */
  #finished(m, index) {
    const view = new AnswerView();
    view.show(m.content, m.reasoning ?? "");
    this.#end(view, m, index);
    return view.element;
  }

  /** @param {AnswerView} view @param {AssistantMessage} m @param {number} index */
  #end(view, m, index) {
    view.wait("");
    if (m.error !== undefined) view.element.append(h("p.failed", { role: "alert" }, m.error));
    else if (m.content === "" && m.stats === undefined) view.element.append(h("p.small", {}, "Stopped before it began."));
    const again = (/** @type {boolean} */ same) => () => { if (!this.#actions.busy()) this.#actions.again(index, same); };
    view.element.append(h("div.row.tools", {},
      copyButton(() => m.content),
      h("button.link.again", { type: "button", onclick: again(false) }, "New answer"),
      m.stats && h("button.link.again", { type: "button", title: "With the same seed: the same text", onclick: again(true) },
        "Repeat"),
      m.stats && h("p.small.figures", { title: `tokens and log-probabilities: SHA-256 ${m.stats.digest}` }, figures(m.stats))));
  }

  /** The last question, as it was just sent. @param {string} content @param {number} index */
  asked(content, index) {
    this.#log.querySelector(".welcome")?.remove();
    this.#log.append(this.#question(content, index));
    this.toEnd();
  }

  /** An answer begins; the returned functions make it grow and end it. @param {number} index */
  begin(index) {
    const view = new AnswerView(), log = this.#log, conversation = this.#conversation;
    log.setAttribute("aria-busy", "true");
    log.append(view.element);
    this.toEnd();
    let follow = true;
    const look = () => { follow = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END; };
    log.addEventListener("scroll", look, { passive: true });
    return {
      wait: (/** @type {string} */ text) => view.wait(text),
      grow: (/** @type {string} */ content, /** @type {string} */ reasoning) =>
        view.show(content, reasoning, () => { if (follow) this.toEnd(); }),
      end: (/** @type {AssistantMessage} */ m) => {
        log.removeEventListener("scroll", look);
        log.setAttribute("aria-busy", "false");
        if (this.#conversation !== conversation) return;
        view.show(m.content, m.reasoning ?? "");
        this.#end(view, m, index);
        if (follow) this.toEnd();
      },
    };
  }

  toEnd() { this.#log.scrollTop = this.#log.scrollHeight; }
}
