/**
 * error.js: the one kind of error that this package throws. The code is stable; the message is one line in plain words with
 * the numbers in it.
 *
 * Codes of the core are those of slm2/status.h: ARGUMENT, MEMORY, IO, FORMAT, JSON, VERSION, INTEGRITY, UNSUPPORTED,
 * UNSUPPORTED_QUANTIZATION, DIMENSION_MISMATCH, WEIGHT, TOKEN, CHAT, CONTEXT_OVERFLOW, NUMERICAL, CANCELLED,
 * INTERNAL_INVARIANT. Codes of the browser around it:
 *   NOT_ISOLATED  the page lacks a header or a feature: engine.capabilities.why() says which
 *   NO_MODEL      nothing is loaded
 *   IN_USE        another tab has the model
 *   TAKEN         another tab took the model over
 *   QUOTA         the browser's storage is full
 *   NO_STORAGE    the browser has no storage, or refuses it
 *   NOT_FOUND     no such model is stored
 *   NETWORK       the page's own server did not deliver
 *   NO_START      a worker gave no sign of life after it was started
 *   POISONED      the engine broke and was ended; restart() makes a new one
 *   ABORTED       an AbortSignal, stop() or unload() ended the request
 *   CLOSED        close() was called
 */

/** What a request had made before it ended. @typedef {{ids: number[], text: string, reasoning: string}} Tokens */

/** @typedef {{code: string, message: string, details: Record<string, unknown>}} PlainError */

export class Slm2Error extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {Record<string, unknown>} [details] names and numbers of the message, for programs
   * @param {Tokens} [tokens] of a generation that broke off
   */
  constructor(code, message, details = {}, tokens = undefined) {
    super(message);
    this.code = code;
    this.details = details;
    this.tokens = tokens;
  }

  /** As other APIs do, an aborted request has the name AbortError. */
  get name() { return this.code === "ABORTED" ? "AbortError" : "Slm2Error"; }

  /** For a message between threads: what a structured clone would lose. @param {unknown} e @returns {PlainError} */
  static plain(e) {
    if (e instanceof Slm2Error) return { code: e.code, message: e.message, details: e.details };
    const other = /** @type {Error} */ (e);
    return { code: "INTERNAL_INVARIANT", message: `${other.name}: ${other.message}`, details: { stack: other.stack } };
  }

  /** @param {PlainError} plain */
  static from({ code, message, details }) { return new Slm2Error(code, message, details); }
}

export const START_SECONDS = 15;

/** The error of a worker that never spoke. @param {string} name */
export const mute = (name) => new Slm2Error("NO_START", `${name} did not start within ${START_SECONDS} seconds: reload the page; if that ` +
  "does not help, the browser blocks or delays workers", { worker: name, seconds: START_SECONDS });

/** The error of a request that a signal ended. @param {string} what @param {AbortSignal} [signal] @param {Tokens} [tokens] */
export const aborted = (what, signal, tokens) =>
  new Slm2Error("ABORTED", `${what} was aborted`, { reason: signal?.reason }, tokens);
