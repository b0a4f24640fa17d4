/* A page that loads the npm package from node_modules and prints tokens. Served with the two headers that README.md of the
 * package names; /models/demo.slm2 is any .slm2 file. */
import { createEngine } from "./node_modules/slm2/engine/index.js";

const show = (id, text) => { document.getElementById(id).textContent = text; };
try {
  const engine = await createEngine();
  await engine.load({ url: "/models/demo.slm2" }, { onProgress: ({ phase, loaded, total }) => show("state", `${phase} ${loaded}/${total}`) });
  let text = "";
  for await (const event of engine.generate({ messages: [{ role: "user", content: "Who are you?" }], seed: 1 })) {
    if (event.type === "token") show("answer", text += event.text);
    if (event.type === "done") show("state", `${event.finish}: ${event.completionTokens} tokens, seed ${event.seed}`);
  }
  await engine.close();
} catch (error) {
  show("state", `${error.code}: ${error.message}`);
}
