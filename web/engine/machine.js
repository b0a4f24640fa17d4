/**
 * machine.js: one memory, the workers on it, and the page's end of its rings: what lives from a load to an unload, or until
 * something breaks. Client.js decides what runs on it. A machine never comes back: the next model gets another one, because a
 * memory is freed only with its last thread, and a thread that broke must never meet new data.
 */
import { START_SECONDS, Slm2Error, mute } from "./error.js";
import { CommandWriter, EventReader, controlWords, parts, ringBell } from "./ring.js";
import { CANCEL_ALL, MAGIC, PAGE, STATE, VERSION, WORD } from "./protocol.js";
import { HAS_WAIT_ASYNC, changed, deferred, frame, inTime, sleep, turn } from "./wait.js";

const EVENTS_A_TURN = 64; /* read and handed out between two frames: far less than 50 ms of work */
const SILENCE_MS = 10000; /* without a heartbeat while something runs */
const TICK_MS = 1000;
const FAREWELL_MS = 300; /* for workers to leave by themselves before they are ended */

/** @typedef {{module: WebAssembly.Module, sha256: string}} Compiled
 *  @typedef {{event: (e: import("./ring.js").Event) => void, broken: (e: Slm2Error) => void}} Owner */

export class Machine {
  /** @type {Worker[]} the engine first */ #workers = [];
  /** @type {Owner} */ #owner;
  #words;
  #commands;
  #events;
  #ended = false;
  #paused = false;
  #resumed = deferred();
  #left = deferred();
  #inside = 0;
  #silent = 0;
  #tick = 0;
  #running = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */ #watchdog;

  /** @param {number} pages @param {BigUint64Array} terms @param {Owner} owner */
  constructor(pages, terms, owner) {
    try {
      this.memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    } catch (cause) {
      throw new Slm2Error("MEMORY", `this browser does not give ${pages} pages (${(pages * PAGE).toLocaleString("en")} bytes) of ` +
        `memory: ${/** @type {Error} */ (cause).message}`, { pages, bytes: pages * PAGE });
    }
    this.#owner = owner;
    this.#words = controlWords(this.memory);
    const ring = () => this.#ring();
    this.#commands = new CommandWriter(this.memory, ring);
    this.#events = new EventReader(this.memory, ring);
    this.#words[WORD.MAGIC] = MAGIC;
    this.#words[WORD.VERSION] = VERSION;
    new BigUint64Array(this.memory.buffer, this.#words.byteOffset + 4 * WORD.PLAN, terms.length).set(terms);
  }

  /** Starts the workers; resolves when all have said the right hello. @param {Compiled} compiled @param {number} threads */
  async start(compiled, threads) {
    await this.#spawn("./engine-worker.js", "slm2 engine", 0, compiled);
    const rest = Array.from({ length: threads - 1 }, (_, i) => this.#spawn("./compute-worker.js", `slm2 compute ${i + 1}`, i + 1, compiled));
    await Promise.all(rest);
    void this.#drain();
    this.#watchdog = setInterval(() => this.#look(), TICK_MS);
  }

  /** @param {string} script @param {string} name @param {number} index @param {Compiled} compiled */
  #spawn(script, name, index, { module, sha256 }) {
    const hello = deferred(), options = /** @type {const} */ ({ type: "module", name });
    const worker = index === 0 ? new Worker(new URL("./engine-worker.js", import.meta.url), options)
      : new Worker(new URL("./compute-worker.js", import.meta.url), options);
    this.#workers.push(worker);
    const fail = (/** @type {Slm2Error} */ error) => {
      hello.fail(error);
      this.#break(error);
    };
    worker.onerror = (e) => {
      e.preventDefault?.();
      fail(new Slm2Error("POISONED", `${name} ended: ${e.message || `its script ${script} was refused (are the isolation headers on it?)`}`,
        { worker: name }));
    };
    worker.onmessage = ({ data }) => {
      if (data.type === "hello") {
        if (data.version === VERSION && data.protocol === VERSION && data.sha256 === sha256) hello.done(undefined);
        else fail(new Slm2Error("VERSION", `${name} speaks protocol ${data.version}, its module ${data.protocol}, the page ${VERSION}: ` +
          "reload the page", { worker: name, ...data }));
      } else if (data.type === "left") {
        if (++this.#inside === this.#workers.length) this.#left.done(undefined);
      } else fail(new Slm2Error(data.code ?? "POISONED", `${name}: ${data.message}`, { worker: name, ...data.details }));
    };
    worker.postMessage({ module, memory: this.memory, index, sha256 });
    return inTime(hello.promise, START_SECONDS, () => mute(name)).catch((e) => {
      this.#break(e);
      throw e;
    });
  }

  #ring() {
    ringBell(this.#words, WORD.DOORBELL);
    if (!HAS_WAIT_ASYNC) this.#workers[0]?.postMessage({ ring: true });
  }

  /** Writes a whole command, in parts, waiting for room as needed. @param {number} op @param {number} request
   * @param {Uint8Array} payload */
  async send(op, request, payload) {
    this.#running = request;
    this.#silent = 0;
    for (const { flags, part } of parts(payload)) {
      for (;;) {
        const bell = Atomics.load(this.#words, WORD.EVENT_BELL);
        if (this.#ended) return;
        if (this.#commands.write(op, request, flags, part)) break;
        await Promise.race([changed(this.#words, WORD.EVENT_BELL, bell), sleep(20)]);
      }
    }
  }

  /** The last event of the request has come. */
  finished() { this.#running = 0; }

  /** Stops a request, also one that the engine has not begun; one that is over must not take the word from the one that runs.
   * @param {number} request */
  cancel(request) {
    if (request !== this.#running) return;
    Atomics.store(this.#words, WORD.CANCEL, request);
    this.#ring();
  }

  /** Leaves events in the ring until resume(): a full ring pauses the engine. */
  pause() { this.#paused = true; }
  resume() {
    this.#paused = false;
    this.#resumed.done(undefined);
    this.#resumed = deferred();
  }

  /* Hands out what the engine tells: at once when it has been quiet, else with the next frame. */
  async #drain() {
    try {
      while (!this.#ended) {
        if (this.#paused) await this.#resumed.promise;
        const bell = Atomics.load(this.#words, WORD.EVENT_BELL);
        if (this.#give() > 0) await frame();
        else await changed(this.#words, WORD.EVENT_BELL, bell);
      }
    } catch (e) {
      this.#break(e instanceof Slm2Error ? e : new Slm2Error("INTERNAL_INVARIANT", String(/** @type {Error} */ (e).stack)));
    }
  }

  #give() {
    const events = this.#events.read(EVENTS_A_TURN);
    for (const event of events) if (!this.#ended) this.#owner.event(event);
    return events.length;
  }

  /* The heartbeat must rise while something runs, unless it is the page that keeps the engine waiting. A tick after a long
     sleep of the machine or a throttled timer counts as one. */
  #look() {
    const beat = Atomics.load(this.#words, WORD.HEARTBEAT);
    const waits = this.#running === 0 || this.#paused || this.#events.used > 0;
    this.#silent = waits || beat !== this.#tick ? 0 : this.#silent + TICK_MS;
    this.#tick = beat;
    if (this.#silent >= SILENCE_MS)
      this.#break(new Slm2Error("POISONED", `the engine gave no sign of life for ${SILENCE_MS / 1000} seconds`, { silentMs: this.#silent }));
  }

  /** Whether the core itself says that it must not be used any more. */
  get poisoned() { return Atomics.load(this.#words, WORD.STATE) === STATE.POISONED; }

  /** @param {Slm2Error} error */
  #break(error) {
    if (this.#ended) return;
    this.kill();
    this.#owner.broken(error);
  }

  /** Tells every thread to leave. */
  #quit() {
    clearInterval(this.#watchdog);
    Atomics.store(this.#words, WORD.CANCEL, CANCEL_ALL);
    Atomics.store(this.#words, WORD.QUIT, 1);
    ringBell(this.#words, WORD.START_BELL); /* where the pool's threads sleep */
    ringBell(this.#words, WORD.END_BELL);
    this.#ring();
  }

  /** Ends at once. What was running is lost. */
  kill() {
    if (this.#ended) return;
    this.#ended = true;
    this.#quit();
    this.#release();
  }

  /** Lets the threads leave by themselves, as far as they do soon, then ends them. */
  async end() {
    if (this.#ended) return;
    this.#ended = true;
    this.#quit();
    await Promise.race([this.#left.promise, sleep(FAREWELL_MS)]);
    await turn();
    this.#release();
  }

  #release() {
    for (const worker of this.#workers) {
      worker.onerror = worker.onmessage = null;
      worker.terminate();
    }
    this.#workers = [];
    this.resume();
    ringBell(this.#words, WORD.EVENT_BELL); /* whoever waits for an event lets go of the memory */
  }
}
