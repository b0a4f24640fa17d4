/* The page's form: hostile text becomes text, thinking is folded, everything goes by keyboard, nothing jumps or overflows. */
import assert from "node:assert/strict";
import fs from "node:fs";
import { pause, test } from "./harness.mjs";
import { command, GOOD, open } from "./page.mjs";

const QUESTION = "What is the capital of France?", STORY = "Tell me a story.";
const AXE = "build/node/node_modules/axe-core/axe.min.js";
const VIEWS = ["Chat", "Models", "Prove it", "Privacy"];

/** name, Markdown, selector of what must be there, text that must be there */
const HOSTILE = [
  ["script", "<script>globalThis.hit = 1</script>", "p", "<script>globalThis.hit = 1</script>"],
  ["inline script", "a <script>globalThis.hit = 1</script> b", "p", "<script>"],
  ["handler", '<img src=x onerror="globalThis.hit = 1"> <svg onload="globalThis.hit = 1">', "p", "onerror"],
  ["frame", '<iframe src="https://198.51.100.9/"></iframe>\n\n<object data=x></object>\n\n<embed src=x>', "p", "<iframe"],
  ["style", "<style>* { display: none }</style>\n\n<link rel=stylesheet href=//198.51.100.9/x.css>", "p", "<style>"],
  ["form", '<form action="https://198.51.100.9/"><button>Go</button></form>', "p", "<button>"],
  ["image", "![cat](https://198.51.100.9/cat.png)", "a[href='https://198.51.100.9/cat.png']", "cat"],
  ["image of data", "![x](data:image/svg+xml,<svg/onload=globalThis.hit=1>)", "", "x"],
  ["javascript link", "[a](javascript:globalThis.hit=1)", "span", "a"],
  ["javascript link, cased", "[a](JaVaScRiPt:globalThis.hit=1)", "span", "a"],
  ["javascript link, entity", "[a](java&#115;cript:globalThis.hit=1) [b](&#x6A;avascript:globalThis.hit=1)", "p", "a"],
  ["javascript link, blanks", "[a](<  javascript:globalThis.hit=1>) [b](java\tscript:globalThis.hit=1)", "p", "a"],
  ["javascript autolink", "<javascript:globalThis.hit=1>", "p", "javascript"],
  ["data and other links", "[a](data:text/html,<script>1</script>) [b](vbscript:x) [c](file:///etc/passwd) [d](blob:x) " +
    "[e](//x.y) [f](/models)", "p", "a b c d e f"],
  ["reference", "[a][r]\n\n[r]: javascript:globalThis.hit=1", "span", "a"],
  ["good links", "[a](https://example.org/) <https://example.org/b> me@example.org",
    "a[rel='noopener noreferrer'][target='_blank']", "a"],
  ["code", "```html\n<script>globalThis.hit = 1</script>\n```", "pre code", "<script>globalThis.hit = 1</script>"],
  ["fence that does not end", "```js\nlet x = '<b>';\n", "pre code", "let x = '<b>';"],
  ["language", '```"><img src=x onerror=globalThis.hit=1>\nx\n```', ".code-head", '"><img'],
  ["entities", "&lt;b&gt; &amp; a < b && c", "p", "<b> & a < b && c"],
  ["table", "| a | <b>x</b> |\n|---|---|\n| <script>1</script> | `|` |", "table td", "<script>1</script>"],
  ["table of many cells", `|${"a|".repeat(3000)}\n|${"-|".repeat(3000)}\n|${"b|".repeat(3000)}`, "td", "b"],
  ["tasks", "- [ ] a\n- [x] b", "li input[type=checkbox][disabled]", "a"],
  ["headings", "# a\n###### b", "h6", "b"],
  ["a thousand lists", Array.from({ length: 1000 }, (_, i) => `${" ".repeat(2 * i)}- x`).join("\n"), "p", "- x"],
  ["five thousand quotes", `${"> ".repeat(5000)}deep`, "p", "deep"],
  ["three thousand numbers", "1. ".repeat(3000), "p", "1. "],
  ["a line of 100 KB", "x".repeat(100000), "p", "xxx"],
  ["words of 100 KB", "word ".repeat(20000), "p", "word word"],
  ["stars", "*a ".repeat(20000), "p", "*a"],
  ["nested emphasis", `${"*a **b ".repeat(900)}x${" b** a*".repeat(900)}`, "p", "x"],
  ["brackets", "[".repeat(20000), "p", "[[["],
  ["links without end", "[a](".repeat(20000), "p", "[a]("],
  ["underscores", "_a".repeat(20000), "p", "_a_a"],
  ["backticks", "`a ".repeat(20000), "p", "`a"],
  ["angles", "<a ".repeat(20000), "p", "<a"],
  ["emoji, right to left, accents", "👩‍👩‍👧‍👦 שלום עולם مرحبا Z̷̢͕a\u0300\u202Ereversed", "p", "שלום"],
  ["nulls and controls", "a\u0000b\u0007c\ufffdd\ud800e", "p", "a"],
  ["nothing", "", "", ""],
  ["only blanks", " \n\t\n ", "", ""],
];

test("whatever a model writes becomes text: nothing runs, nothing is fetched, nothing hangs", { timeout: 90 }, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`, { expect: /ServiceWorker|not supported|denied/i });
  for (const [name, text, selector, shown] of HOSTILE) {
    for (const whole of [true, false]) { /* at once; and as it comes, in pieces */
      const got = await user.page.evaluate(async (markdown, atOnce) => {
        const { MarkdownView } = await import(new URL("markdown.js", location.href).href);
        const box = document.createElement("div");
        document.getElementById("log").append(box);
        const view = new MarkdownView(box), step = Math.max(1, Math.ceil(markdown.length / 8));
        for (let n = atOnce ? markdown.length : step; n < markdown.length; n += step) view.show(markdown.slice(0, n));
        view.show(markdown);
        const good = "p span a strong em del code pre br hr ul ol li blockquote h3 h4 h5 h6 div button input table thead tbody " +
          "tr th td";
        const bad = [...box.querySelectorAll("*")].filter((e) => !good.split(" ").includes(e.localName)
          || [...e.attributes].some(({ name: n, value }) =>
            /^on|^style|^src/i.test(n) || (n === "href" && !/^(https?:|mailto:)/i.test(value))));
        let depth = 0;
        for (let e = box; e; e = e.firstElementChild) depth += 1;
        const result = { bad: bad.map((e) => e.outerHTML.slice(0, 99)), text: box.textContent, depth, html: box.innerHTML };
        globalThis.found = (what) => what === "" || box.querySelector(what) !== null;
        globalThis.clean = () => box.remove();
        return { ...result, html: "" };
      }, text, whole);
      assert.deepEqual(got.bad, [], name);
      assert.ok(got.text.includes(shown), `${name}: ${got.text.slice(0, 200)}`);
      assert.ok(got.depth < 200, `${name}: ${got.depth} deep`);
      assert.ok(await user.page.evaluate((what) => globalThis.found(what), selector), `${name}: no ${selector}`);
      await user.page.evaluate(() => globalThis.clean());
    }
  }
  await pause(200);
  assert.equal(await user.page.evaluate(() => globalThis.hit ?? null), null);
  const strange = (user.page.requests ?? []).filter((r) => !r.url.startsWith(server.origin) && !/^(data|blob):/.test(r.url));
  assert.deepEqual(strange, []);
});

const grows = { engines: GOOD };
test("a growing answer: thinking folded, finished blocks untouched, no jumps, the reader's place kept", grows, async (t) => {
  const server = await command(t), user = await open(t, `${server.origin}/`);
  const got = await user.page.evaluate(async () => {
    const { ChatView } = await import(new URL("chat.js", location.href).href);
    const chat = new ChatView({ again() {}, edit() {}, busy: () => true });
    const log = document.getElementById("log"), frame = () => new Promise((done) => requestAnimationFrame(done));
    chat.show({ id: "x", title: "x", created: "", updated: "", system: "", messages: [{ role: "user", content: "Tell me." }] });
    let shift = 0;
    const sees = PerformanceObserver.supportedEntryTypes.includes("layout-shift");
    const observer = new PerformanceObserver((list) => { for (const e of list.getEntries()) shift += e.value; });
    if (sees) observer.observe({ type: "layout-shift", buffered: false });
    const piece = "The first *paragraph* of an answer, which `grows` by tokens.\n\n- one\n- two\n\n```js\nlet x = 1;\n```\n\n" +
      "And so on, with some words. ";
    const words = piece.repeat(4).split(/(?<=[ \n])/).slice(0, 160);
    const view = chat.begin(1), out = { folded: null, thought: "", first: true, log: [] };
    view.wait("Reading the conversation");
    let text = "", reasoning = "", first = null;
    for (let i = 0; i < 200; i++) {
      if (i < 40) reasoning += "Let me think. ";
      else text += words[i - 40];
      view.wait("");
      view.grow(text, reasoning);
      await frame();
      await frame();
      if (i === 100) first = log.querySelector(".answer .prose p");
      if (i === 150) log.scrollTop = 0; /* the reader goes back */
      if (i === 152) await new Promise((done) => setTimeout(done, 100));
    }
    const details = log.querySelector(".thought");
    out.folded = [details.hidden, details.open, details.textContent.slice(0, 30)];
    out.kept = first === log.querySelector(".answer .prose p");
    out.busy = log.getAttribute("aria-busy");
    view.end({ role: "assistant", content: text, reasoning, stats: { finish: "stop", promptTokens: 5, reusedTokens: 2,
      completionTokens: 200, prefillMs: 5, decodeMs: 1000, seed: "9", model: "a".repeat(64), digest: "b".repeat(64) } });
    await frame();
    await frame();
    await new Promise((done) => setTimeout(done, 50));
    out.after = [log.getAttribute("role"), log.getAttribute("aria-live"), log.getAttribute("aria-busy"), log.scrollTop];
    out.figures = log.querySelector(".figures").textContent;
    out.shift = sees ? shift : null;
    return out;
  });
  assert.deepEqual(got.folded, [false, false, "ThinkingLet me think. Let me t"]);
  assert.deepEqual([got.kept, got.busy], [true, "true"]);
  assert.deepEqual(got.after, ["log", "polite", "false", 0]);
  assert.equal(got.figures, "199 tokens/s · 200 tokens · prompt 5, 2 reused · finished · seed 9 · model aaaaaaaa");
  if (got.shift !== null) assert.ok(got.shift <= 0.01, `layout shift ${got.shift}`);
  t.note(`layout shift ${got.shift}`);
});

/** Violations that are serious or worse. */
async function inspect(user) {
  return user.page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.filter((v) => ["serious", "critical"].includes(v.impact))
      .map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 120)} ${n.any[0]?.message ?? ""}`).join(" | ")}`);
  });
}

test("axe finds nothing serious in any view, light and dark, with notices, dialogs and plans open",
  { engines: ["chromium"], timeout: 120 }, async (t) => {
    const server = await command(t), user = await open(t, `${server.origin}/`), { tab } = user.page.own;
    await user.ask(QUESTION);
    await user.page.evaluate(async () => {
      const { notice } = await import(new URL("dom.js", location.href).href);
      notice("Something to know.", { actions: [{ label: "Do it", run() {} }] });
      notice("Something went wrong.", { kind: "error" });
    });
    await tab.evaluate(fs.readFileSync(AXE, "utf8"));
    for (const colorScheme of ["light", "dark"]) {
      await tab.emulateMedia({ colorScheme });
      for (const view of VIEWS) {
        await user.view(view);
        await pause(150);
        if (view === "Models") {
          await user.press("Memory", "#view-models");
          await user.page.waitFor(() => document.querySelector("#view-models tfoot") !== null);
        }
        assert.deepEqual(await inspect(user), [], `${colorScheme} ${view}`);
      }
      await user.view("Chat");
      await user.press("Edit");
      await user.page.evaluate(() => { document.getElementById("options").open = true; });
      await user.fill("set-temperature", "-1");
      assert.deepEqual(await inspect(user), [], `${colorScheme} editing, settings`);
      await user.press("Cancel", "#log");
      await user.view("Privacy");
      await user.press("Delete everything");
      assert.deepEqual(await inspect(user), [], `${colorScheme} dialog`);
      await user.press("Cancel", "dialog");
      await user.view("Chat");
      await user.press("New conversation");
      assert.deepEqual(await inspect(user), [], `${colorScheme} welcome`);
      await user.press(QUESTION, "#conversations");
    }
    await tab.setViewportSize({ width: 360, height: 740 });
    await user.press("Conversations", ".bar");
    assert.deepEqual(await inspect(user), [], "narrow, conversations open");
  });

test("nothing runs over sideways from 320 to 1600 pixels, at 200 % too; less motion and forced colours are heeded",
  { engines: ["chromium"], timeout: 90 }, async (t) => {
    const server = await command(t), user = await open(t, `${server.origin}/`), { tab } = user.page.own;
    await user.page.evaluate(async () => { /* a conversation with all that can be wide */
      const { ChatView } = await import(new URL("chat.js", location.href).href);
      const chat = new ChatView({ again() {}, edit() {}, busy: () => false });
      const table = `| ${"a | ".repeat(30)}\n|${"-|".repeat(30)}\n| ${"b | ".repeat(30)}`;
      const wide = `${"w".repeat(300)}\n\n${table}\n\n\`\`\`\n${"c".repeat(400)}\n\`\`\``;
      chat.show({ id: "x", title: "x", created: "", updated: "", system: "", messages: [{ role: "user", content: wide },
        { role: "assistant", content: wide, reasoning: wide, error: wide, stats: { finish: "stop", promptTokens: 5,
          reusedTokens: 2, completionTokens: 200, prefillMs: 5, decodeMs: 1000, seed: "18446744073709551615",
          model: "a".repeat(64), digest: "" } }] });
      const { notice } = await import(new URL("dom.js", location.href).href);
      notice("n".repeat(300), { kind: "error", actions: [{ label: "An action", run() {} }] });
      document.getElementById("options").open = true;
    });
    const over = () => user.page.evaluate(() => [document.scrollingElement, ...document.querySelectorAll("#log, .page")]
      .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => `${e.id || e.tagName} ${e.scrollWidth} > ${e.clientWidth}`));
    for (const width of [320, 360, 480, 768, 769, 1024, 1280, 1600]) {
      await tab.setViewportSize({ width, height: 740 });
      for (const view of VIEWS) {
        await user.view(view);
        if (view === "Models") {
          await pause(150);
          await user.press("Memory", "#view-models");
          await user.page.waitFor(() => document.querySelector("#view-models tfoot") !== null);
        }
        await pause(30);
        assert.deepEqual(await over(), [], `${width} ${view}`);
        const bar = await user.page.evaluate(() => document.querySelector(".bar").getBoundingClientRect().bottom);
        assert.ok(bar < 200, `${width}: the bar ends at ${bar}`);
      }
    }
    for (const [width, height] of [[640, 400], [512, 384]]) { /* 1280 by 800 at 200 %, 1024 by 768 at 200 % */
      await tab.setViewportSize({ width, height });
      await user.page.evaluate(() => { document.getElementById("options").open = false; });
      for (const view of VIEWS) {
        await user.view(view);
        assert.deepEqual(await over(), [], `200 % ${width} ${view}`);
      }
      await user.view("Chat");
      assert.ok(await user.page.evaluate(() => document.getElementById("prompt").getBoundingClientRect().bottom <= innerHeight));
    }
    await tab.emulateMedia({ reducedMotion: "reduce", forcedColors: "active" });
    assert.equal(await user.page.evaluate(() => {
      document.getElementById("status").dataset.kind = "busy";
      return getComputedStyle(document.getElementById("status"), "::before").animationName;
    }), "none");
    assert.equal(await user.page.evaluate(() => getComputedStyle(document.getElementById("send")).borderTopStyle), "solid");
  });

test("everything by keyboard: views, menu, a question, its answer's tools, settings, conversations, dialogs; focus stays",
  { engines: ["chromium"], timeout: 90 }, async (t) => {
    const server = await command(t), user = await open(t, `${server.origin}/`), { tab } = user.page.own;
    const key = (name) => tab.keyboard.press(name);
    const at = () => user.page.evaluate(() => {
      const e = document.activeElement;
      return e.id || (e.getAttribute("aria-label") ?? e.textContent).trim().slice(0, 40) || e.tagName;
    });
    /** Tabs on until it is there. */
    const to = async (name, how = "Tab") => {
      for (let i = 0; i < 80 && await at() !== name; i++) await key(how);
      assert.equal(await at(), name);
    };
    await key("Tab");
    assert.equal(await at(), "Skip to the message field");
    await key("Enter");
    assert.equal(await at(), "prompt");
    await tab.keyboard.type("What is the");
    await key("Shift+Enter");
    await tab.keyboard.type("capital of France?");
    await key("Enter");
    await user.idle();
    await user.page.waitFor(() => document.activeElement.id === "prompt");
    await to("Repeat", "Shift+Tab");
    await key("Enter");
    await user.page.waitFor(() => document.getElementById("stop").hidden && document.activeElement.id === "prompt");
    await to("Edit", "Shift+Tab");
    await key("Enter");
    assert.equal(await at(), "Your message, edited");
    await key("Escape");
    assert.equal(await at(), "Edit");
    await to("Settings the model's own");
    await key("Enter");
    await to("set-temperature");
    await tab.keyboard.type("0.5");
    await key("Enter");
    await to("The model's own settings");
    await key("Enter");
    await to("Privacy", "Shift+Tab");
    await key("Enter");
    assert.equal(await at(), "Privacy");
    await to("Delete everything");
    await key("Enter");
    assert.equal(await at(), "Cancel");
    await key("Enter");
    assert.equal(await at(), "Delete everything");
    await to("Chat", "Shift+Tab");
    await key("Enter");
    await to("new-chat");
    await key("Enter");
    assert.equal(await at(), "prompt");
    await tab.keyboard.type(STORY);
    await key("Enter");
    await user.idle();
    const [{ id }] = await user.exported();
    await to(`open-${id}`, "Shift+Tab");
    await key("Tab");
    assert.equal(await at(), `name-${id}`);
    await key("Enter");
    assert.equal(await at(), "ask-line");
    await tab.keyboard.type("A tale");
    await key("Enter");
    await user.page.waitFor(() => document.querySelector(".conversation").textContent === "A tale");
    assert.equal(await at(), `name-${id}`);
    await key("Tab");
    await key("Enter");
    await key("Tab");
    await key("Enter");
    await user.page.waitFor(() => document.querySelectorAll(".conversation").length === 1);
    assert.equal(await at(), "prompt");
    await tab.setViewportSize({ width: 360, height: 740 });
    await to("menu", "Shift+Tab");
    await key("Enter");
    assert.equal(await at(), "new-chat");
    await key("Escape");
    assert.equal(await at(), "menu");
    assert.equal(await user.page.evaluate(() => document.getElementById("side").checkVisibility()), false);
  });
