/* What a test in the network namespace of netns.sh sees of what tries to leave the machine. */
import fs from "node:fs";
import { pause } from "./harness.mjs";

const count = () => Number(fs.readFileSync(process.env.SLM2_NETNS_COUNT, "utf8"));
const written = () => fs.readFileSync(process.env.SLM2_NETNS_PACKETS, "utf8").split("\n").slice(0, -1);

/** Starts to watch. What it gives says the packets since then, one line each: the kernel has counted as many. */
export function watchPackets() {
  const [counted, lines] = [count(), written().length];
  return async () => {
    for (;;) { /* packets.c writes down what the kernel has counted already */
      const n = count() - counted;
      const out = written().slice(lines);
      if (out.length >= n) return out;
      await pause(10);
    }
  };
}
