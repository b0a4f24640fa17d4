/** dom.js: elements in one line each. Text is always text: nothing here takes HTML. */

/** The element with this id. @template {HTMLElement} T @param {string} id @returns {T} */
export const $ = (id) => /** @type {T} */ (document.getElementById(id));

/**
 * An element: h("button.link", {type: "button", onclick}, "Stop"). Properties are set as properties where the element has
 * them, else as attributes; children are nodes, texts, or lists of them; null and false are nothing.
 * @param {string} what tag and classes
 * @param {Record<string, any>} [props]
 * @param {...any} children
 * @returns {any}
 */
export function h(what, props = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  if (classes.length > 0) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (name in element) /** @type {any} */ (element)[name] = value;
    else element.setAttribute(name, String(value));
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** @param {number} n */
export const grouped = (n) => n.toLocaleString("en-US");

/** @param {number} n */
export function bytes(n) {
  for (const [unit, size] of /** @type {const} */ ([["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]))
    if (n >= size) return `${(n / size).toFixed(n >= 100 * size ? 0 : 1)} ${unit}`;
  return `${n} bytes`;
}

/** Shows a line above the page until it is dismissed. @param {string} text
 * @param {{kind?: "info" | "error", actions?: {label: string, run: () => void}[], key?: string}} [options] key: replaces an
 * earlier notice of the same key
 * @returns {() => void} removes it */
export function notice(text, { kind = "info", actions = [], key = text } = {}) {
  const box = $("notices");
  dismiss(key);
  const close = () => element.remove();
  const element = h(`div.notice.${kind}`, { role: kind === "error" ? "alert" : "status" },
    h("p", {}, text),
    actions.map(({ label, run }) => h("button.link", { type: "button", onclick: () => { close(); run(); } }, label)),
    h("button.link", { type: "button", onclick: close }, "Dismiss"));
  element.dataset.key = key;
  box.append(element);
  return close;
}

/** Removes the notice of this key. @param {string} key */
export function dismiss(key) {
  for (const box of [...$("notices").children]) if (/** @type {HTMLElement} */ (box).dataset.key === key) box.remove();
}

/** A button that copies a text and says so. @param {() => string} text @param {string} [label] @returns {HTMLButtonElement} */
export function copyButton(text, label = "Copy") {
  const button = h("button.link", { type: "button" }, label);
  const say = (/** @type {string} */ word) => {
    button.textContent = word;
    setTimeout(() => { button.textContent = label; }, 1500);
  };
  button.addEventListener("click", () =>
    navigator.clipboard.writeText(text()).then(() => say("Copied"), () => say("Not allowed")));
  return button;
}

/** A question with two answers. @param {string} question @param {string} yes @returns {Promise<boolean>} */
export function ask(question, yes) {
  return new Promise((done) => {
    const dialog = h("dialog.ask", { ariaLabel: question },
      h("form", { method: "dialog" },
        h("p", {}, question),
        h("div.row", {},
          h("button", { value: "no", autofocus: true }, "Cancel"),
          h("button.primary.danger", { value: "yes" }, yes))));
    show(dialog, () => done(dialog.returnValue === "yes"));
  });
}

/** A question whose answer is a line. @param {string} question @param {string} value @returns {Promise<string | null>} */
export function askLine(question, value) {
  return new Promise((done) => {
    const field = h("input", { id: "ask-line", value, maxLength: 200 });
    const dialog = h("dialog.ask", { ariaLabel: question },
      h("form", { method: "dialog" },
        h("label", { htmlFor: field.id }, question), field,
        h("div.row", {},
          h("button.primary", { value: "yes" }, "Save"),
          h("button", { value: "no" }, "Cancel"))));
    show(dialog, () => done(dialog.returnValue === "yes" ? field.value : null));
    field.select();
  });
}

/** @param {HTMLDialogElement} dialog @param {() => void} closed */
function show(dialog, closed) {
  dialog.addEventListener("close", () => {
    dialog.remove();
    closed();
  });
  document.body.append(dialog);
  dialog.showModal();
}

/** Offers a text as a file. @param {string} name @param {string} text @param {string} type */
export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Lets the user pick files. @param {string} accept @param {boolean} [multiple] @returns {Promise<File[]>} */
export function pick(accept, multiple = false) {
  return new Promise((done) => {
    const input = h("input", { type: "file", accept, multiple, hidden: true });
    document.body.append(input);
    const end = () => {
      input.remove();
      done([...input.files]);
    };
    input.addEventListener("change", end);
    input.addEventListener("cancel", end);
    input.click();
  });
}
