/** slm2: Qwen3 in a browser tab, the same bits everywhere. Start with createEngine; README.md has an example. */
export { createEngine, Engine, EngineEvent } from "./client.js";
export { Slm2Error } from "./error.js";
export { lacks, probeFeatures } from "./features.js";
export { Answer } from "./request.js";
export { Store } from "./store.js";
