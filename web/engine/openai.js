/**
 * openai.js: chat.completions as the OpenAI client has it, over an engine. What a local model cannot do is refused by the
 * field's name; nothing is ignored.
 *
 * Beside the fields of that API: top_k, min_p, repetition_penalty, enable_thinking (also in chat_template_kwargs).
 */
import { Slm2Error } from "./error.js";

/** @typedef {import("./client.js").Engine} Engine
 *  @typedef {import("./request.js").Summary} Summary
 *  @typedef {import("./request.js").AnswerEvent} AnswerEvent */

/**
 * @typedef {object} ChatParams
 * @property {object[]} messages
 * @property {string} [model] what is loaded: its id, identity or name
 * @property {boolean} [stream]
 * @property {{include_usage?: boolean}} [stream_options]
 * @property {number} [seed] @property {number} [temperature] @property {number} [top_p]
 * @property {number} [max_tokens] @property {number} [max_completion_tokens]
 * @property {string | string[]} [stop]
 * @property {boolean} [logprobs]
 * @property {object[]} [tools] @property {string} [tool_choice] "auto" or "none"
 * @property {number} [top_k] @property {number} [min_p] @property {number} [repetition_penalty]
 * @property {boolean} [enable_thinking] @property {{enable_thinking?: boolean}} [chat_template_kwargs]
 */

const refuse = (/** @type {string} */ name, /** @type {string} */ why) => new Slm2Error("UNSUPPORTED", `${name}: ${why}`, { name });

/** Fields whose only value that can be granted is the one that changes nothing. @type {Record<string, unknown[]>} */
const NEUTRAL = {
  n: [1], top_logprobs: [0], presence_penalty: [0], frequency_penalty: [0], response_format: [], logit_bias: [], functions: [],
  function_call: [], audio: [], modalities: [], prediction: [], reasoning_effort: [], web_search_options: [], verbosity: [],
  parallel_tool_calls: [true],
};
const IGNORABLE = new Set(["user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"]);
const KNOWN = new Set(["messages", "model", "stream", "stream_options", "seed", "temperature", "top_p", "max_tokens",
  "max_completion_tokens", "stop", "logprobs", "tools", "tool_choice", "top_k", "min_p", "repetition_penalty",
  "enable_thinking", "chat_template_kwargs"]);

/** @param {any} p */
function checkFields(p) {
  if (typeof p !== "object" || p === null) throw new Slm2Error("ARGUMENT", "give an object with messages");
  for (const [name, value] of Object.entries(p)) {
    if (value === undefined || value === null || KNOWN.has(name)) continue;
    if (IGNORABLE.has(name)) throw refuse(name, "is for a server; nothing is sent or stored here");
    const granted = NEUTRAL[name];
    if (granted === undefined) throw refuse(name, "is not known");
    if (!granted.includes(value))
      throw refuse(name, granted.length === 0 ? "is not supported" : `only ${granted.map((v) => JSON.stringify(v)).join(", ")} is supported`);
  }
  const only = (/** @type {string} */ field, /** @type {any} */ object, /** @type {string} */ key) => {
    for (const name of Object.keys(object ?? {})) if (name !== key) throw refuse(`${field}.${name}`, "is not supported");
  };
  only("stream_options", p.stream_options, "include_usage");
  only("chat_template_kwargs", p.chat_template_kwargs, "enable_thinking");
  if (![undefined, null, "auto", "none"].includes(p.tool_choice)) throw refuse("tool_choice", 'only "auto" and "none" are supported');
}

/** A text content may come as a list of text parts. @param {any} message @param {number} i */
function flat(message, i) {
  if (!Array.isArray(message?.content)) return message;
  const texts = message.content.map((/** @type {any} */ part, /** @type {number} */ k) => {
    if (part?.type !== "text" || typeof part.text !== "string") throw refuse(`messages[${i}].content[${k}]`, "only text is supported");
    return part.text;
  });
  return { ...message, content: texts.join("") };
}

/** @param {any} p @returns {import("./messages.js").GenerateParams} */
function paramsOf(p) {
  if (!Array.isArray(p.messages)) throw new Slm2Error("ARGUMENT", "messages: are no list", { name: "messages" });
  const tools = p.tool_choice === "none" || p.tools?.length === 0 ? null : p.tools, or = (/** @type {any} */ v) => v ?? undefined;
  return {
    messages: p.messages.map(flat), tools: or(tools), thinking: or(p.enable_thinking ?? p.chat_template_kwargs?.enable_thinking),
    temperature: or(p.temperature), topK: or(p.top_k), topP: or(p.top_p), minP: or(p.min_p), repeatPenalty: or(p.repetition_penalty),
    maxTokens: or(p.max_completion_tokens ?? p.max_tokens), seed: or(p.seed),
    stop: typeof p.stop === "string" ? [p.stop] : or(p.stop),
  };
}

const OPEN = "<tool_call>", CLOSE = "</tool_call>";

/** @typedef {{index: number, id: string, type: "function", function: {name: string, arguments: string}}} ToolCall */

/** Takes an answer's text and gives its content and tool calls apart. A call that is no JSON with a name stays text. */
export class ToolCalls {
  #held = "";
  #count = 0;
  /** @param {boolean} on without tools everything is content */
  constructor(on) { this.on = on; }

  /** @param {string} text @param {boolean} last @returns {{content: string, calls: ToolCall[]}} */
  push(text, last) {
    if (!this.on) return { content: text, calls: [] };
    this.#held += text;
    let content = "";
    const calls = /** @type {ToolCall[]} */ ([]);
    for (;;) {
      const open = this.#held.indexOf(OPEN);
      if (open < 0) break;
      const close = this.#held.indexOf(CLOSE, open);
      if (close < 0) break;
      const call = this.#call(this.#held.slice(open + OPEN.length, close)), end = close + CLOSE.length;
      content += this.#held.slice(0, call === null ? end : open);
      this.#held = this.#held.slice(end);
      if (call !== null) calls.push(call);
    }
    const keep = last ? 0 : this.#undecided();
    content += this.#held.slice(0, this.#held.length - keep);
    this.#held = this.#held.slice(this.#held.length - keep);
    return { content: this.#count > 0 && content.trim() === "" ? "" : content, calls };
  }

  /* How much at the end is, or may become, a call. */
  #undecided() {
    const open = this.#held.indexOf(OPEN);
    if (open >= 0) return this.#held.length - open;
    for (let n = Math.min(OPEN.length - 1, this.#held.length); n > 0; n--) if (this.#held.endsWith(OPEN.slice(0, n))) return n;
    return 0;
  }

  /** @param {string} json @returns {ToolCall | null} */
  #call(json) {
    let value;
    try {
      value = JSON.parse(json);
    } catch {
      return null;
    }
    if (typeof value?.name !== "string") return null;
    return { index: this.#count++, id: `call_${crypto.randomUUID()}`, type: "function",
      function: { name: value.name, arguments: JSON.stringify(value.arguments ?? {}) } };
  }

  get any() { return this.#count > 0; }
}

/** @param {Summary} s @param {number} reasoningTokens */
const usage = (s, reasoningTokens) => ({
  prompt_tokens: s.promptTokens, completion_tokens: s.completionTokens, total_tokens: s.promptTokens + s.completionTokens,
  prompt_tokens_details: { cached_tokens: s.reusedTokens },
  completion_tokens_details: { reasoning_tokens: reasoningTokens },
});

/** @param {string | null} finish @param {ToolCalls} tools */
const finishReason = (finish, tools) => (finish === "cancelled" ? "abort" : finish === "stop" && tools.any ? "tool_calls" : finish);

/** @param {Extract<AnswerEvent, {type: "token"}>} e */
const logprob = ({ text, logprob }) => ({ token: text, bytes: [...new TextEncoder().encode(text)], logprob, top_logprobs: [] });

export class Completions {
  #engine;
  /** @param {Engine} engine */
  constructor(engine) { this.#engine = engine; }

  /** With stream: true an async iterable of chunks, else the completion.
   * @param {ChatParams} params @param {{signal?: AbortSignal}} [options] @returns {Promise<any>} */
  async create(params, options = {}) {
    checkFields(params);
    const model = this.#engine.model, name = params.model ?? undefined;
    if (model !== null && name !== undefined && ![model.id, model.identity, model.name].includes(name))
      throw new Slm2Error("ARGUMENT", `model: "${name}" is not loaded; "${model.name}" (${model.id ?? model.identity}) is`, { name: "model" });
    const answer = this.#engine.generate(paramsOf(params), options), loaded = /** @type {NonNullable<typeof model>} */ (model);
    const head = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1000), model: loaded.id ?? loaded.name,
      system_fingerprint: loaded.identity };
    const tools = new ToolCalls(Array.isArray(params.tools) && params.tools.length > 0 && params.tool_choice !== "none");
    return params.stream === true ? chunks(head, answer, params, tools) : whole(head, answer, params, tools);
  }
}

/** @param {object} head @param {import("./request.js").Answer} answer @param {ChatParams} params @param {ToolCalls} tools */
async function* chunks(head, answer, params, tools) {
  const withUsage = params.stream_options?.include_usage === true;
  const chunk = (/** @type {object} */ delta, /** @type {string | null} */ finish_reason = null, /** @type {any} */ logprobs = null) => ({
    ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, logprobs, finish_reason }],
    ...(withUsage ? { usage: null } : {}),
  });
  let reasoningTokens = 0;
  for await (const e of answer) {
    if (e.type === "begin") yield chunk({ role: "assistant", content: "" });
    if (e.type === "token") {
      const reasoning = e.channel === "reasoning", delta = /** @type {any} */ ({});
      const { content, calls } = reasoning ? { content: "", calls: [] } : tools.push(e.text, e.finish !== null);
      if (reasoning && e.id !== null) reasoningTokens++;
      if (reasoning && e.text !== "") delta.reasoning_content = e.text;
      if (content !== "") delta.content = content;
      if (calls.length > 0) delta.tool_calls = calls;
      const probs = params.logprobs === true && e.id !== null ? { content: [logprob(e)], refusal: null } : null;
      if (Object.keys(delta).length > 0 || probs !== null) yield chunk(delta, null, probs);
    }
    if (e.type === "done") {
      yield chunk({}, finishReason(e.finish, tools));
      if (withUsage) yield { ...head, object: "chat.completion.chunk", choices: [], usage: usage(e, reasoningTokens) };
    }
  }
}

/** @param {object} head @param {import("./request.js").Answer} answer @param {ChatParams} params @param {ToolCalls} tools */
async function whole(head, answer, params, tools) {
  const probs = [];
  let reasoningTokens = 0;
  for await (const e of answer) {
    if (e.type === "token" && e.id !== null) {
      if (e.channel === "reasoning") reasoningTokens++;
      if (params.logprobs === true) probs.push(logprob(e));
    }
  }
  const s = await answer.summary, { content, calls } = tools.push(s.text, true);
  const message = { role: "assistant", content: content === "" && calls.length > 0 ? null : content, refusal: null,
    ...(s.reasoning === "" ? {} : { reasoning_content: s.reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(({ index, ...call }) => call) }) };
  return {
    ...head, object: "chat.completion",
    choices: [{ index: 0, message, logprobs: params.logprobs === true ? { content: probs, refusal: null } : null,
      finish_reason: finishReason(s.finish, tools) }],
    usage: usage(s, reasoningTokens),
    seed: s.seed,
  };
}

/** @param {Engine} engine */
export async function listModels(engine) {
  const stored = (await engine.store.list()).filter((model) => model.sealed);
  return { object: "list", data: stored.map((model) => ({ id: model.id, object: "model", owned_by: "local",
    created: Math.floor(Date.parse(model.imported ?? "") / 1000) || 0, name: model.name })) };
}
