/* Processes of a browser, from /proc: its tree, what each of them is, and what it holds in memory (Linux only).
 * performance.memory does not count WebAssembly memories, so residence is read from the kernel.
 */
import fs from "node:fs";

const read = (pid, name) => {
  try {
    return fs.readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return ""; /* it ended meanwhile */
  }
};

/** The process and all its descendants, parents first.
 * @param {number} root @returns {number[]} */
export function tree(root) {
  const children = new Map();
  for (const name of fs.readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = read(name, "stat"); /* pid (any name) state parent ... */
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const out = [root];
  for (let i = 0; i < out.length; i++) out.push(...(children.get(out[i]) ?? []));
  return out;
}

/** The words of its command line (a process that renamed itself has blanks between them).
 * @param {number} pid @returns {string[]} */
export const commandLine = (pid) => read(pid, "cmdline").split(/[\0 ]/);

/** Does this process run pages? Chromium: --type=renderer; Firefox: a content process of kind tab; WebKit: by name. */
export function isRenderer(pid) {
  const words = commandLine(pid);
  if (words.includes("--type=renderer") || words[0].endsWith("WebKitWebProcess")) return true;
  return words.includes("-contentproc") && words.includes("tab");
}

/** Bytes: resident, of that not backed by files (private and shared), and the highest resident so far.
 * @param {number} pid @returns {{pid: number, resident: number, anonymous: number, peak: number}} */
export function memory(pid) {
  const status = read(pid, "status");
  const bytes = (name) => 1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0);
  return { pid, resident: bytes("VmRSS"), anonymous: bytes("RssAnon") + bytes("RssShmem"), peak: bytes("VmHWM") };
}

/** Starts the peak anew from what is resident now. */
export function resetPeak(pid) {
  try {
    fs.writeFileSync(`/proc/${pid}/clear_refs`, "5");
  } catch {
    /* ended meanwhile */
  }
}

/** CPU time of a process so far, in milliseconds (ticks of 10 ms). */
export function cpuTime(pid) {
  const stat = read(pid, "stat");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

/** Ends these processes at once, as a crash would. */
export function killAll(pids) {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      /* ended by itself */
    }
  }
}
