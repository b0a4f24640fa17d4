/* Stands in for engine-worker.js: says hello as it should, takes the first command, and never moves again. */
import { VERSION, WORD } from "/engine/protocol.js";
import { controlWords } from "/engine/ring.js";

self.onmessage = ({ data: { memory, sha256 } }) => {
  if (memory === undefined) return;
  self.postMessage({ type: "hello", version: VERSION, protocol: VERSION, sha256 });
  const words = controlWords(memory);
  setInterval(() => {
    while (Atomics.load(words, WORD.COMMAND_HEAD) !== 0 && Atomics.load(words, WORD.QUIT) === 0);
  }, 10);
};
