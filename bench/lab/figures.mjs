/* What the laboratory counts with: samples by name, medians, how busy the machine is, tables and CSV. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";

export const cores = availableParallelism();
export const KINDS = ["relaxed", "simd", "scalar"]; /* of modules */
export const MiB = 1048576;

/** What a command printed. */
export const run = (command, args, env = {}, timeout = 0) => execFileSync(command, args,
  { timeout, encoding: "utf8", env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 24 });
export const reason = (error) => String(error.stderr || error.message).trim().split("\n").pop().slice(0, 200);

/** NaN of none. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Values by browser, runner, threads and metric. */
export class Samples {
  #all = new Map();
  add(browser, runner, threads, metric, value) {
    const key = JSON.stringify([browser, runner, threads, metric]);
    if (!Number.isFinite(value)) throw new Error(`${key} is ${value}`);
    this.#all.set(key, [...this.values(browser, runner, threads, metric), value]);
  }
  values(browser, runner, threads, metric) { return this.#all.get(JSON.stringify([browser, runner, threads, metric])) ?? []; }
  median(...key) { return median(this.values(...key)); }
  most(...key) { return Math.max(...this.values(...key)); } /* -Infinity of none */
  keys() { return [...this.#all.keys()].map((key) => JSON.parse(key)); }
}

/** Share of the processors' time that others take while this script waits half a second. */
export function busyShare() {
  const add = ([idle, all], { times: t }) => [idle + t.idle, all + t.user + t.nice + t.sys + t.irq + t.idle];
  const [idle, all] = cpus().reduce(add, [0, 0]);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
  const [idleNow, allNow] = cpus().reduce(add, [0, 0]);
  return 1 - (idleNow - idle) / Math.max(allNow - all, 1);
}

/** Page faults of a process that needed no disk, so far. */
export function minorFaults(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[7]);
}

export const number = (x, digits = 2) => (Number.isFinite(x) ? x.toFixed(digits) : "-");

/** How a value stands; less is better where the floor is not below the goal. */
export function verdict(value, floor, goal) {
  if (!Number.isFinite(value)) return "not measured";
  const sign = goal <= floor ? -1 : 1;
  if (sign * value >= sign * goal) return "goal";
  if (Number.isNaN(floor)) return "below the goal";
  return sign * value >= sign * floor ? "floor" : "BELOW THE FLOOR";
}

const cell = (x) => (/[",\n]/.test(x) ? `"${x.replaceAll('"', '""')}"` : x);
export const csvLine = (values) => values.map((x) => cell(typeof x !== "number" ? String(x)
  : Number.isFinite(x) ? String(Number(x.toPrecision(5))) : "")).join(",") + "\n";
