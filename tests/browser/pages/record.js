/* For engines whose driver reports no console: keeps what the page says and what it does not catch. A classic script, put
 * before all others by the test server.
 */
"use strict";
globalThis.slm2Recorded = [];
{
  const keep = (type, text) => globalThis.slm2Recorded.push({ type, text });
  for (const [name, type] of [["log", "log"], ["info", "info"], ["warn", "warning"], ["error", "error"]]) {
    const say = console[name].bind(console);
    console[name] = (...words) => {
      keep(type, words.map(String).join(" "));
      say(...words);
    };
  }
  addEventListener("error", (e) => keep("uncaught", e.message ?? "a resource did not load"), true);
  addEventListener("unhandledrejection", (e) => keep("uncaught", String(e.reason)));
  addEventListener("securitypolicyviolation", (e) => keep("error", `Content-Security-Policy: ${e.effectiveDirective} ${e.blockedURI}`));
}
