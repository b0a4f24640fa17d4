/* The protocol is written down three times: docs/PROTOCOL.md for people, wasm/web.h for C, web/engine/protocol.js. They agree. */
import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";
import * as protocol from "../../web/engine/protocol.js";

const header = fs.readFileSync("wasm/web.h", "utf8"), page = fs.readFileSync("docs/PROTOCOL.md", "utf8");
const status = fs.readFileSync("include/slm2/status.h", "utf8");

/** Members of an enum by name, counting as C does. */
function members(text, from) {
  const body = text.slice(text.indexOf(from)).match(/\{([^}]*)\}/)[1].replace(/\/\*.*?\*\//gs, "");
  const out = {};
  let next = 0;
  for (const word of body.split(",").map((w) => w.trim()).filter((w) => w !== "")) {
    const [name, value] = word.split("=").map((w) => w.trim());
    next = value === undefined ? next : Number(value);
    out[name] = next++;
  }
  return out;
}
const camel = (name) => name.replace(/_([a-z])/g, (_, c) => c.toUpperCase());
const without = (prefix, object) => Object.fromEntries(Object.entries(object).map(([k, v]) => [k.slice(prefix.length), v]));
/** The rows of the first table after a heading. */
function table(heading) {
  const rest = page.slice(page.indexOf(heading)), rows = [];
  for (const line of rest.split("\n").slice(1)) {
    if (line.startsWith("| ")) rows.push(line.split("|").slice(1, -1).map((cell) => cell.trim()));
    else if (rows.length > 0 && !line.startsWith("|")) break;
  }
  return rows.slice(1);
}

test("constants are those of web.h", () => {
  const known = { VERSION: 1, MAGIC: 1, PAGE: 1, MAX_PAGES: 1, CONTROL: 1, CONTROL_BYTES: 1, RING_BYTES: 1, STACK_BYTES: 1,
    PAYLOAD_MAX: 1, SCRATCH_MAX: 1, THREADS_MAX: 1 };
  for (const name of Object.keys(known)) {
    const value = new RegExp(`#define SLM2_WEB_${name} (\\w+?)u\\b`).exec(header)?.[1];
    assert.equal(protocol[name], Number(value), name);
  }
  assert.equal(protocol.COMMANDS, protocol.CONTROL + protocol.CONTROL_BYTES);
  assert.equal(protocol.EVENTS, protocol.COMMANDS + protocol.RING_BYTES);
  assert.equal(protocol.STACKS, protocol.EVENTS + protocol.RING_BYTES);
});

test("words, turns, commands and events are those of web.h", () => {
  assert.deepEqual({ ...protocol.WORD }, without("SLM2_WORD_", members(header, "enum slm2_web_word")));
  assert.deepEqual({ ...protocol.TURN }, without("SLM2_TURN_", members(header, "typedef enum slm2_web_turn")));
  assert.deepEqual({ ...protocol.COMMAND }, without("SLM2_COMMAND_", members(header, "enum slm2_web_command")));
  assert.deepEqual({ ...protocol.EVENT }, without("SLM2_EVENT_", members(header, "enum slm2_web_event")));
  assert.equal(protocol.FLAG_MORE, Number(/#define SLM2_FLAG_MORE (\d+)u/.exec(header)[1]));
  assert.match(header, /#define SLM2_WEB_CANCEL_ALL UINT32_MAX/);
  assert.equal(protocol.CANCEL_ALL, 2 ** 32 - 1);
});

test("words, commands and events are those of PROTOCOL.md", () => {
  const upper = (text) => text.toUpperCase().replaceAll(" ", "_");
  const names = { CANCEL: "CANCEL", THREADS_INSIDE: "INSIDE", PLAN: "PLAN" };
  for (const [word, name] of table("### Control block")) {
    const key = names[upper(name)] ?? upper(name);
    assert.equal(protocol.WORD[key], parseInt(word, 10), `${word} ${name}`);
  }
  const commands = table("### Commands").map(([op, name]) => [name, Number(op)]);
  assert.deepEqual(Object.fromEntries(commands), { ...protocol.COMMAND });
  const events = table("### Events").map(([op, name]) => [name, Number(op)]);
  assert.deepEqual(Object.fromEntries(events), { ...protocol.EVENT });
  assert.equal(protocol.VERSION, Number(/Version: \*\*(\d+)\*\*/.exec(page)[1]));
  const states = /state \| engine \| ([^|]*)\|/.exec(page)[1].split(",").map((s) => s.trim().split(" "));
  assert.deepEqual(Object.fromEntries(states.map(([value, name]) => [upper(name), Number(value)])), { ...protocol.STATE });
});

test("the plan has the terms of web.h and PROTOCOL.md, in their order", () => {
  const body = header.slice(header.indexOf("typedef struct slm2_web_plan_terms")).match(/\{([^}]*)\}/)[1];
  const terms = body.split(";").flatMap((line) => line.replace(/uint64_t/, "").split(",")).map((t) => t.trim()).filter((t) => t !== "");
  assert.deepEqual([...protocol.PLAN_TERMS], terms.map(camel));
  const text = page.slice(page.indexOf("Thirty-two u64"), page.indexOf("Profiles: 0 f32"));
  const named = [...text.matchAll(/`([^`]*)`/g)].flatMap(([, words]) => words.split(",")).map((t) => camel(t.trim()));
  assert.deepEqual([...protocol.PLAN_TERMS], named);
  assert.equal(protocol.PLAN_TERMS.length, 32);
});

test("status names are those of status.h", () => {
  const names = without("SLM2_", members(status, "typedef enum slm2_status"));
  const expected = Object.fromEntries(Object.entries(names).map(([name, value]) => [value, name.replace(/^E_/, "")]));
  assert.deepEqual({ ...protocol.STATUS_NAMES }, expected);
});
