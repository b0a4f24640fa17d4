/* WebKitGTK for driver.mjs: MiniBrowser behind WebKitWebDriver (W3C WebDriver over HTTP), on an X server of its own.
 * The session is ephemeral and has no OPFS; it reports no requests and, being ephemeral, no console messages: the test
 * server puts pages/record.js into the pages it serves, which keeps them until the next evaluate.
 * JSC_useSharedArrayBuffer allows shared memory whether or not the headers that should allow it are there.
 */
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { spawn } from "node:child_process";

const BINARY = "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser";
const ENVIRONMENT = {
  WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1", WEBKIT_DISABLE_COMPOSITING_MODE: "1", NO_AT_BRIDGE: "1",
  JSC_useSharedArrayBuffer: "1",
};
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** One command; a JSON object in, the "value" of the answer out. */
function command(port, method, target, body) {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? "" : JSON.stringify(body);
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) };
    const request = http.request({ host: "127.0.0.1", port, method, path: target, headers }, (response) => {
      let answer = "";
      response.setEncoding("utf8").on("data", (part) => { answer += part; }).on("end", () => {
        let value;
        try {
          value = JSON.parse(answer).value;
        } catch {
          return reject(new Error(`WebKitWebDriver said: ${answer}`));
        }
        if (response.statusCode < 400) resolve(value);
        else reject(new Error(`WebKitWebDriver: ${value.error}: ${value.message}`));
      });
    });
    request.on("error", reject);
    request.end(text);
  });
}

/** An X server that chooses its own display number; it ends with its last client. */
function startDisplay() {
  const server = spawn("Xvfb", ["-displayfd", "3", "-screen", "0", "1280x900x24", "-nolisten", "tcp", "-terminate"],
    { stdio: ["ignore", "ignore", "ignore", "pipe"] });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.once("exit", (code) => reject(new Error(`Xvfb ended with ${code}`)));
    server.stdio[3].once("data", (number) => {
      server.removeAllListeners("exit");
      resolve({ server, name: `:${String(number).trim()}` });
    });
  });
}

/** @param {import("./driver.mjs").Browser} browser */
export async function launchWebkit(browser, options) {
  const display = await startDisplay();
  const port = 20000 + (process.pid * 7 + Date.now()) % 20000;
  const output = fs.openSync(path.join(browser.profile, "output.log"), "a");
  const folder = (name) => path.join(browser.profile, name);
  const driver = spawn("WebKitWebDriver", [`--port=${port}`, "--host=127.0.0.1"], {
    stdio: ["ignore", output, output],
    env: {
      ...process.env, ...ENVIRONMENT, DISPLAY: display.name, HOME: browser.profile, XDG_DATA_HOME: folder("data"),
      XDG_CACHE_HOME: folder("cache"), XDG_CONFIG_HOME: folder("config"), ...options.env,
    },
  });
  fs.closeSync(output);
  browser.pid = driver.pid;
  browser.helpers.push(driver, display.server);
  for (let i = 0; ; i++) {
    if (await command(port, "GET", "/status").then(() => true, () => false)) break;
    if (i === 100) throw new Error("WebKitWebDriver did not start");
    await pause(100);
  }
  const args = ["--automation", ...(options.flags ?? [])];
  const created = await command(port, "POST", "/session", {
    capabilities: { alwaysMatch: { "webkitgtk:browserOptions": { binary: BINARY, args } } },
  });
  browser.version = `${created.capabilities.browserName} ${created.capabilities.browserVersion}`;
  const session = `/session/${created.sessionId}`;
  const say = (method, target, body) => command(port, method, session + target, body);
  await say("POST", "/timeouts", { script: 3600000, pageLoad: 60000 });

  let current = await say("GET", "/window");
  let blank = current;
  let turn = Promise.resolve(); /* WebDriver has one current window: commands go one after another */
  const inWindow = (handle, work) => {
    const result = turn.then(async () => {
      if (current !== handle) await say("POST", "/window", { handle });
      current = handle;
      return work();
    });
    turn = result.catch(() => {});
    return result;
  };
  browser.own = {
    close: () => say("DELETE", ""),
    async newPage(page) {
      const handle = blank ?? (await say("POST", "/window/new", { type: "tab" })).handle;
      blank = null;
      const run = async (text) => {
        const script = `const done = arguments[arguments.length - 1];
          (${text}).then((json) => done([json, globalThis.slm2Recorded?.splice(0) ?? []]));`;
        const [json, recorded] = await say("POST", "/execute/async", { script, args: [] });
        for (const { type, text: said } of recorded) {
          if (type === "uncaught") page.errors.push(said);
          else page.console.push({ type, text: said });
        }
        return json;
      };
      return {
        goto: (url) => inWindow(handle, () => say("POST", "/url", { url })),
        reload: () => inWindow(handle, () => say("POST", "/refresh", {})),
        front: () => inWindow(handle, async () => {}),
        evaluate: (text) => inWindow(handle, () => run(text)),
        close: () => inWindow(handle, async () => {
          const windows = await say("GET", "/window/handles");
          if (windows.length === 1) { /* closing the last one would end the browser */
            blank = handle;
            return say("POST", "/url", { url: "about:blank" });
          }
          current = null; /* closing leaves no current window */
          return say("DELETE", "/window");
        }),
      };
    },
  };
}
