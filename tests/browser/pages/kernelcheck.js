/* A worker of harness.html that runs tests/kernelcheck as a module: what it printed and its exit code. {id, args: [kind, bench]} in,
 * {id, value} out; value is null where this engine refuses the module. */
addEventListener("message", async ({ data: { id, args: [kind, bench = 0] } }) => {
  try {
    postMessage({ id, value: await run(await (await fetch(`/wasm/${kind}/kernelcheck.wasm`)).arrayBuffer(), bench) });
  } catch (error) {
    postMessage({ id, error: String(error) });
  }
});

async function run(bytes, bench) {
  if (!WebAssembly.validate(bytes)) return null;
  const memory = new WebAssembly.Memory({ initial: 8192, maximum: 8192, shared: true });
  let text = "";
  const write = (at, n) => {
    text += new TextDecoder().decode(new Uint8Array(memory.buffer, at >>> 0, n).slice());
  };
  const env = { memory, write, now: () => performance.now() };
  const core = (await WebAssembly.instantiate(bytes, { env })).instance.exports;
  const model = new Uint8Array(await (await fetch("/models/demo.slm2")).arrayBuffer());
  new Uint8Array(memory.buffer, core.lend_model(model.length) >>> 0, model.length).set(model);
  return { code: core.kernelcheck(bench), text };
}
