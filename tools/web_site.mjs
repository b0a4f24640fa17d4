// Completes a folder of the page's files: what the build knows and the sources cannot.
// Usage: node tools/web_site.mjs DIR [--site]
//   build.json       version (a hash of all files), identity of the demo model
//   sw.js            @VERSION@, @FILES@ and @CSP@ filled in: one versioned set
//   --site           also the demo model's headers for hosts that read _headers (Netlify, Cloudflare Pages) or .htaccess (Apache)
// DIR holds index.html, engine/, wasm/, models/demo.slm2. The same files give the same output.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";

const [dir, site] = process.argv.slice(2);
const CSP = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'; " +
  "img-src 'self' data: blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEADERS = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Content-Security-Policy": CSP,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const files = (folder) => readdirSync(folder).sort().flatMap((name) => {
  const path = join(folder, name);
  return statSync(path).isDirectory() ? files(path) : [path];
});

/** Identity of a .slm2 file: SHA-256 of its header. */
function identity(path) {
  const bytes = readFileSync(path), n = Number(bytes.readBigUInt64LE(0));
  return sha256(bytes.subarray(8, 8 + n));
}

const demo = join(dir, "models", "demo.slm2");
const paths = files(dir).map((path) => relative(dir, path).split(sep).join("/"))
  .filter((path) => !path.startsWith("models/") && !["sw.js", "build.json", "_headers", ".htaccess"].includes(path));
const hashes = Object.fromEntries(paths.map((path) => [path, sha256(readFileSync(join(dir, path)))]));
const sw = readFileSync(join(dir, "sw.js"), "utf8");
const version = sha256(JSON.stringify([hashes, sw, identity(demo)])).slice(0, 16);
const build = JSON.stringify({ version, demo: { identity: identity(demo), bytes: statSync(demo).size } }, null, 1) + "\n";
writeFileSync(join(dir, "build.json"), build);
hashes["build.json"] = sha256(build);

const list = Object.entries(hashes).sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, hash]) => `\n  "${path}": "${hash}",`).join("");
const filled = sw.replace("@VERSION@", version).replace("/* @FILES@ */", list + "\n").replace("@CSP@", CSP);
if (/@(VERSION|FILES|CSP)@/.test(filled.replace(/^\s*\*.*$/gm, ""))) throw new Error("sw.js: a place to fill is missing");
writeFileSync(join(dir, "sw.js"), filled);

if (site === "--site") {
  writeFileSync(join(dir, "_headers"), "/*\n" + Object.entries(HEADERS).map(([k, v]) => `  ${k}: ${v}\n`).join(""));
  writeFileSync(join(dir, ".htaccess"), "AddType application/wasm .wasm\nAddType text/javascript .js\n" +
    "AddType application/manifest+json .webmanifest\nAddType application/octet-stream .slm2\n<IfModule mod_headers.c>\n" +
    Object.entries(HEADERS).map(([k, v]) => `  Header always set ${k} "${v}"\n`).join("") + "</IfModule>\n");
}
console.log(`${relative(process.cwd(), dir)}: version ${version}, ${Object.keys(hashes).length} files`);
