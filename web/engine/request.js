/**
 * request.js: what was asked of an engine, from the call to its last event. A Request is one promise; an Answer is a
 * generation: an async iterator over its events besides.
 */
import { Slm2Error, aborted } from "./error.js";
import { COMMAND, EVENT } from "./protocol.js";
import { deferred } from "./wait.js";

const MANY = 256, FEW = 64; /* events that wait for their consumer: where the engine is paused, and where it goes on */

/** @typedef {object} Summary
 *  @property {"stop" | "length" | "cancelled"} finish
 *  @property {string} text
 *  @property {string} reasoning
 *  @property {number[]} ids
 *  @property {number} promptTokens @property {number} reusedTokens of them, that did not have to be computed again
 *  @property {number} completionTokens the end token counts
 *  @property {number} prefillMs @property {number} decodeMs
 *  @property {number} drafted @property {number} accepted ids that were computed ahead, and of them used
 *  @property {string} digest SHA-256 of ids and log-probabilities, as `slm2 run --json` gives it
 *  @property {number | bigint} seed
 *
 *  @typedef {{type: "begin", promptTokens: number, reusedTokens: number, seed: number | bigint}} BeginEvent
 *  @typedef {{type: "progress", phase: string, done: number, total: number}} ProgressEvent
 *  @typedef {{type: "token", id: number | null, position: number, logprob: number, channel: "answer" | "reasoning",
 *    finish: string | null, text: string}} TokenEvent text is what became certain, perhaps of earlier tokens, perhaps none
 *  @typedef {{type: "done"} & Summary} DoneEvent
 *  @typedef {BeginEvent | ProgressEvent | TokenEvent | DoneEvent} AnswerEvent */

/** What a request needs of its engine.
 * @typedef {{enqueue: (r: Request) => void, cancel: (r: Request) => void, pause: () => void, resume: () => void}} Host */

export class Request {
  /** Its number on its memory, once it runs. */ number = 0;
  /** @type {boolean} */ settled = false;
  #outcome = deferred();
  /** @type {(() => void) | null} */ #unlisten = null;

  /** @param {number} op @param {Uint8Array} payload @param {string} what for messages
   * @param {AbortSignal} [signal] @param {(progress: any) => void} [onProgress] */
  constructor(op, payload, what, signal, onProgress) {
    this.op = op;
    this.payload = payload;
    this.what = what;
    this.signal = signal;
    this.onProgress = onProgress;
  }

  /** @returns {Promise<any>} */
  get outcome() { return this.#outcome.promise; }

  /** Puts it into its engine's queue. @param {Host} host */
  submit(host) {
    if (this.signal?.aborted) return this.fail(aborted(this.what, this.signal, this.tokens()));
    const cancel = () => {
      this.stopping(true);
      host.cancel(this);
    };
    this.signal?.addEventListener("abort", cancel);
    this.#unlisten = () => this.signal?.removeEventListener("abort", cancel);
    host.enqueue(this);
  }

  /** It is being cancelled; drop: nobody wants its events any more. @param {boolean} _drop */
  stopping(_drop) {}

  /** What it has made so far. @returns {import("./error.js").Tokens | undefined} */
  tokens() { return undefined; }

  /** @param {number} op @param {any} value @returns {boolean} whether it was the last one */
  take(op, value) {
    if (op === EVENT.PROGRESS) {
      this.onProgress?.(value);
      return false;
    }
    if (op === EVENT.FAILED) this.fail(value.error);
    else this.succeed(value);
    return true;
  }

  /** @param {any} value */
  succeed(value) { this.#settle(() => this.#outcome.done(value)); }
  /** @param {Slm2Error} error */
  fail(error) {
    const said = error.code === "CANCELLED" ? aborted(this.what, this.signal) : error;
    said.tokens ??= this.tokens();
    this.#settle(() => this.#outcome.fail(said));
  }
  /** @param {() => void} how */
  #settle(how) {
    if (this.settled) return;
    this.settled = true;
    this.#unlisten?.();
    how();
  }
}

/** A generation. Iterate over it, or await `summary`; either starts it. Leaving the loop early stops it.
 * @implements {AsyncIterableIterator<AnswerEvent, Summary, undefined>} */
export class Answer extends Request {
  #host;
  #started = false;
  #dropped = false;
  #heldUp = false;
  #stopping = false;
  #waiting = /** @type {AnswerEvent[]} */ ([]);
  #asked = /** @type {ReturnType<typeof deferred>[]} */ ([]);
  #ids = /** @type {number[]} */ ([]);
  #text = "";
  #reasoning = "";
  #returned = false;

  /** @param {Host} host @param {Uint8Array} payload @param {bigint} seed @param {AbortSignal} [signal] */
  constructor(host, payload, seed, signal) {
    super(COMMAND.GENERATE, payload, "the answer", signal);
    this.#host = host;
    /** The seed that it is drawn with: given again, it gives the same answer. @type {number | bigint} */
    this.seed = seed <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(seed) : seed;
  }

  #start() {
    if (this.#started) return;
    this.#started = true;
    this.outcome.then(() => this.#serve(), () => this.#serve());
    this.submit(this.#host);
  }

  /** The summary, without iterating. @returns {Promise<Summary>} */
  get summary() {
    if (!this.#started) this.#dropped = true;
    this.#start();
    return this.outcome;
  }

  /** What is left of it must reach its end, however slow its consumer is. @param {boolean} drop */
  stopping(drop) {
    this.#stopping = true;
    if (drop) {
      this.#dropped = true;
      this.#waiting = [];
    }
    this.#serve();
  }

  tokens() { return { ids: this.#ids, text: this.#text, reasoning: this.#reasoning }; }

  /** @param {number} op @param {any} value */
  take(op, value) {
    switch (op) {
      case EVENT.BEGUN: this.#push({ type: "begin", ...value, seed: this.seed }); return false;
      case EVENT.PROGRESS: this.#push({ type: "progress", ...value }); return false;
      case EVENT.TOKEN:
        if (value.id !== null) this.#ids.push(value.id);
        if (value.channel === "reasoning") this.#reasoning += value.text;
        else this.#text += value.text;
        this.#push({ type: "token", ...value });
        return false;
      case EVENT.DONE: {
        const summary = { ...value, ...this.tokens(), seed: this.seed };
        if (this.signal?.aborted) this.fail(aborted(this.what, this.signal));
        else {
          this.#push({ type: "done", ...summary });
          this.succeed(summary);
        }
        return true;
      }
      default: return super.take(op, value);
    }
  }

  /** @param {AnswerEvent} event */
  #push(event) {
    if (this.#dropped) return;
    if (event.type === "progress" && this.#waiting.at(-1)?.type === "progress") this.#waiting.pop();
    this.#waiting.push(event);
    this.#serve();
    if (this.#waiting.length > MANY && !this.#heldUp && !this.#stopping) {
      this.#heldUp = true;
      this.#host.pause();
    }
  }

  /* Gives waiting events to whoever asked; after the last one, the outcome. */
  #serve() {
    while (this.#asked.length > 0) {
      const event = this.#waiting.shift();
      if (event !== undefined) this.#asked.shift()?.done({ done: false, value: event });
      else if (this.settled || this.#returned) this.#finish(/** @type {any} */ (this.#asked.shift()));
      else break;
    }
    if (this.#heldUp && (this.#waiting.length <= FEW || this.#stopping || this.settled)) {
      this.#heldUp = false;
      this.#host.resume();
    }
  }

  /** The first one to ask gets how it ended; any further one that there is no more. @param {ReturnType<typeof deferred>} asked */
  #finish(asked) {
    if (this.#returned) return asked.done({ done: true, value: undefined });
    this.#returned = true;
    this.outcome.then((value) => asked.done({ done: true, value }), asked.fail);
  }

  /** @returns {Promise<IteratorResult<AnswerEvent, Summary>>} */
  next() {
    this.#start();
    const asked = deferred();
    this.#asked.push(asked);
    this.#serve();
    return /** @type {any} */ (asked.promise);
  }

  /** Stops the answer and waits until the engine has. @param {any} [value] @returns {Promise<IteratorResult<AnswerEvent, Summary>>} */
  async return(value) {
    this.#returned = true;
    this.stopping(true);
    if (this.#started && !this.settled) {
      this.#host.cancel(this);
      await this.outcome.catch(() => {});
    }
    this.#started = true;
    return { done: true, value: await value };
  }

  /** @param {unknown} error @returns {Promise<IteratorResult<AnswerEvent, Summary>>} */
  async throw(error) {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator]() { return this; }
}
