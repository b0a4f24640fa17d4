/* Minutes of prompting, and what the memory of the page's renderer does meanwhile. A line is written every ten seconds, so that
 * a run that is ended early has said what it saw. A pause in which the machine or this process stood still does not count.
 */
import { appendFileSync } from "node:fs";
import * as proc from "../../tests/browser/proc.mjs";
import { MiB, csvLine, median, number } from "./figures.mjs";

const EVERY_MS = 10000, LONGEST_MS = 60000; /* of an answer */
const PROMPTS = ["What is the capital of France?", "Tell me a story about a fox.", "Who are you?", "Why is the sky blue?",
  "Name three colours.", "Write about the sea.", "What do cats eat?", "Good morning!"];

export const SOAK_COLUMNS = "seconds,answers,tokens,anonymous_bytes,resident_bytes,engine\n";

/** @param {{pid: () => number, ask: (params: object) => Promise<any>}} page
 * @param {number} minutes @param {string} file that has its columns @param {string} engine @param {string} what is asked
 * @returns {Promise<string>} what it saw, in a line */
export async function soak(page, minutes, file, engine, what) {
  const samples = [];
  let answers = 0, tokens = 0, next = 0, active = 0;
  while (active < minutes * 60000) {
    const begin = Date.now();
    const { completionTokens } = await page.ask({ messages: [{ role: "user", content: PROMPTS[answers % PROMPTS.length] }],
      seed: answers, temperature: 0.8, maxTokens: 24 + 17 * answers % 80, ignoreEnd: false });
    answers++;
    tokens += completionTokens;
    active += Math.min(Date.now() - begin, LONGEST_MS);
    if (active < next) continue;
    next = active + EVERY_MS;
    const { anonymous, resident } = proc.memory(page.pid());
    samples.push({ anonymous });
    appendFileSync(file, csvLine([Math.round(active / 1000), answers, tokens, anonymous, resident, engine]));
  }
  const n = samples.length;
  const part = (from, to) => samples.slice(Math.floor(from * n), Math.ceil(to * n)).map((s) => s.anonymous / MiB);
  const early = median(part(0.1, 0.3)), late = median(part(0.8, 1)), all = part(0.1, 1);
  return `${engine}, ${what}: ${minutes} minutes, ${answers} answers, ${tokens} tokens; renderer ${number(early, 1)} MiB after a tenth `
    + `to three tenths of the time, ${number(late, 1)} MiB in the last fifth: drift ${number(late - early, 1)} MiB `
    + `(between ${number(Math.min(...all), 1)} and ${number(Math.max(...all), 1)})`;
}
