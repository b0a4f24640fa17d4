/* Feature probes: what an engine has passes, the same module with another opcode does not; plain words for what is missing. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test from "node:test";
import { PROBES, admitted, lacks, probeFeatures } from "../../web/engine/features.js";

test("this engine's features", () => {
  for (const kind of ["threads", "bulk", "simd", "saturating"]) assert.ok(WebAssembly.validate(PROBES[kind]), kind);
});

test("the relaxed probe follows the engine's flag", () => {
  const script = 'import("./web/engine/features.js").then(({ PROBES }) => console.log(WebAssembly.validate(PROBES.relaxed)))';
  const run = (...flags) => spawnSync(process.execPath, [...flags, "-e", script], { encoding: "utf8" });
  const on = run("--experimental-wasm-relaxed-simd");
  if (on.status === 0) assert.equal(on.stdout.trim(), "true"); /* engines that have it for good know no such flag */
  else assert.equal(run().stdout.trim(), "true");
});

test("a probe with an opcode that is none is refused", () => {
  for (const [kind, bytes] of Object.entries(PROBES)) {
    const broken = bytes.slice();
    const at = broken.lastIndexOf({ threads: 0xfe, bulk: 0xfc, simd: 0xfd, saturating: 0xfc, relaxed: 0xfd }[kind]);
    broken[at] = 0xff;
    assert.equal(WebAssembly.validate(broken), false, kind);
  }
});

const all = { secure: true, isolated: true, sharedMemory: true, wasm: true, threads: true, bulk: true, simd: true, relaxed: true,
  waitAsync: true, storage: true, locks: true, persist: true, cores: 2, memoryGiB: null };

test("nothing is missing where everything is there", () => assert.deepEqual(lacks(all), []));

test("the first thing to mend comes first, and alone where others follow from it", () => {
  const names = (c) => lacks({ ...all, ...c }).map((lack) => lack.missing);
  assert.deepEqual(names({ secure: false, isolated: false, sharedMemory: false }), ["secure"]);
  assert.deepEqual(names({ isolated: false, sharedMemory: false }), ["isolated"]);
  assert.deepEqual(names({ sharedMemory: false }), ["sharedMemory"]);
  assert.match(lacks({ ...all, isolated: false })[0].todo, /Cross-Origin-Opener-Policy: same-origin/);
  assert.ok(lacks({ ...all, simd: false, relaxed: false, storage: false, locks: false, waitAsync: false }).every((lack) => !lack.fatal));
});

test("modules are admitted by what is there", () => {
  assert.deepEqual(admitted(all), ["relaxed", "simd", "scalar"]);
  assert.deepEqual(admitted({ ...all, relaxed: false }), ["simd", "scalar"]);
  assert.deepEqual(admitted({ ...all, simd: false, relaxed: false }), ["scalar"]);
});

test("a host without a page lacks what it lacks", () => {
  const here = probeFeatures();
  assert.deepEqual([here.isolated, here.storage, here.threads], [false, false, true]);
  assert.equal(lacks(here)[0].fatal, true);
});
