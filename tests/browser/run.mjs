/* Runs tests/browser/test_*.mjs in one engine. Usage, from the project's root:
 *   node tests/browser/run.mjs chromium|firefox|webkit [--build DIR] [--slow] [--netns] [WORD...]
 * Only tests whose file or name contains one of the WORDs. --slow: those that take minutes as well. --netns: only those for
 * tests/browser/netns.sh, which this process must be in; without it a run starts itself once more there for them.
 */
import fs from "node:fs";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { ENGINES } from "./driver.mjs";
import { runTest, SharedBrowser, tests } from "./harness.mjs";

const words = process.argv.slice(2);
const engine = words.shift();
const build = words.includes("--build") ? words.splice(words.indexOf("--build"), 2)[1] : "build";
const flag = (name) => words.includes(name) && words.splice(words.indexOf(name), 1).length > 0;
const inside = flag("--netns");
const slow = flag("--slow");
if (!ENGINES.includes(engine) || build === undefined || words.some((word) => word.startsWith("-"))) {
  console.error(`usage: node tests/browser/run.mjs ${ENGINES.join("|")} [--build DIR] [--slow] [--netns] [WORD...]`);
  process.exit(2);
}

const folder = "tests/browser";
for (const file of fs.readdirSync(folder).filter((name) => /^test_.*\.mjs$/.test(name)).sort()) {
  const from = tests.length;
  await import(pathToFileURL(path.resolve(folder, file)).href);
  for (const one of tests.slice(from)) one.name = `${file.slice(5, -4)}: ${one.name}`;
}
const chosen = tests.filter((one) => (one.engines ?? ENGINES).includes(engine)
  && (slow || !one.slow) && (words.length === 0 || words.some((word) => one.name.includes(word))));

const shared = new SharedBrowser(engine);
const count = { ok: 0, skip: 0, FAIL: 0 };
for (const one of chosen.filter((each) => Boolean(each.netns) === inside)) {
  const { state, seconds, notes, lines } = await runTest(one, engine, build, shared);
  count[state] += 1;
  const more = notes.length > 0 ? ` (${notes.join("; ")})` : "";
  console.log(`${state.padEnd(4)} ${seconds.toFixed(1).padStart(6)}s ${engine} ${one.name}${more}`);
  for (const line of lines) console.log(`       ${line}`);
}
await shared.drop();

let failed = count.FAIL > 0;
const packets = inside ? [] : chosen.filter((one) => one.netns);
if (packets.length > 0) {
  const again = [process.execPath, "tests/browser/run.mjs", engine, "--netns", "--build", build, ...words];
  const { status } = spawnSync("tests/browser/netns.sh", [path.join(build, "tests/packets"), ...again], { stdio: "inherit" });
  if (status === 77) count.skip += packets.length; /* netns.sh has said why it cannot */
  else if (status !== 0) failed = true;
}
if (count.ok + count.skip + count.FAIL + packets.length === 0) {
  console.log(`no test of ${engine} is called like that`);
  failed = true;
}
console.log(`${failed ? "FAIL" : "ok"} ${engine}${inside ? " in a network namespace" : ""}: `
  + `${count.ok} passed, ${count.FAIL} failed, ${count.skip} skipped`);
process.exit(failed ? 1 : 0);
