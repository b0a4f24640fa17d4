// Results of `make bench` as a picture: how many times better slm2 is than llama.cpp, one bar a figure.
//
//   node bench/plot.mjs RESULTS.csv OUT.svg
//
// Longer is better: for times and memory the bar is the inverse of the ratio. A bar that leaves the picture ends in a notch.
import {readFileSync, writeFileSync} from 'node:fs';

const [, , file, out] = process.argv;
if (!out) {
  console.error('usage: node bench/plot.mjs RESULTS.csv OUT.svg');
  process.exit(2);
}
function cells(line) {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(m => m[1] === undefined ? m[2] : m[1].replaceAll('""', '"'));
}
const [head, ...lines] = readFileSync(file, 'utf8').trim().split('\n').map(cells);
const rows = lines.map(line => Object.fromEntries(head.map((name, i) => [name, line[i]]))).filter(row => Number(row.ratio) > 0);
if (rows.length === 0) {
  console.error(`${file}: no figure has a peer`);
  process.exit(1);
}

// --- what is shown ------------------------------------------------------------------

const less = metric => /^(load|ttft|rss)/.test(metric);
const unit = metric => metric.startsWith('rss') ? 'MB' : less(metric) ? 'ms' : 'tok/s';
const titles = [
  [/^prefill(\d+)$/, n => `Prompt of ${n} tokens`],
  [/^decode$/, () => 'Answer, after 128 tokens'],
  [/^decode(\d+)$/, n => `Answer, after ${n} tokens`],
  [/^ttft$/, () => 'Opening the file to the first token'],
  [/^rss(\d+)$/, n => `Memory, context of ${n} in use`],
];
const title = metric => titles.map(([form, say]) => form.exec(metric) && say(form.exec(metric)[1])).find(text => text);
const order = metric => titles.findIndex(([form]) => form.test(metric));
const groups = [...new Set(rows.map(row => row.metric))].filter(title).sort((a, b) => order(a) - order(b));
const short = text => Number(text) >= 1000 ? String(Math.round(Number(text))) : String(Number(Number(text).toPrecision(3)));

// --- drawing ------------------------------------------------------------------------

const colors = {q8: '#1f6fb4', f32: '#7fb2d9'}, ink = '#1b1f24', faint = '#57606a';
const gainOf = row => less(row.metric) ? 1 / Number(row.ratio) : Number(row.ratio);
const speeds = rows.filter(row => groups.includes(row.metric) && !less(row.metric)).map(gainOf);
const step = Math.max(...speeds) <= 4 ? 1 : Math.max(...speeds) <= 8 ? 2 : 3, most = 4 * step, ticks = [1, step, 2 * step, 3 * step, most];
const width = 880, left = 150, scale = 472 / most, row = 22, gap = 30, top = 92;
const escape = text => text.replace(/[&<>]/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;'})[c]);
const text = (x, y, content, more = '') => `<text x="${x}" y="${y}"${more}>${escape(content)}</text>`;
const body = [];
let y = top;
for (const metric of groups) {
  body.push(text(20, y + 14, title(metric), ' font-weight="600" paint-order="stroke" stroke="#fff" stroke-width="6"'));
  y += 22;
  for (const r of rows.filter(row => row.metric === metric)) {
    const gain = gainOf(r), w = Math.min(gain, most) * scale, far = gain > most;
    const end = (left + w).toFixed(1), notch = far ? `L${left + w - 6} ${y + 11}` : '';
    const name = `${r.profile}, ${r.threads} thread${r.threads === '1' ? '' : 's'}`;
    body.push(text(left - 8, y + 15, name, ` fill="${faint}" text-anchor="end"`));
    body.push(`<path d="M${left} ${y + 3}H${end}${notch}L${end} ${y + row - 3}H${left}Z" fill="${colors[r.profile]}"/>`);
    const note = `${short(r.value)} against ${short(r.peer)} ${unit(metric)}`;
    body.push(`<text x="${(left + w + 8).toFixed(1)}" y="${y + 15}"><tspan font-weight="600">${gain.toFixed(gain < 10 ? 2 : 0)} x</tspan>` +
      `<tspan dx="8" fill="${faint}">${note}</tspan></text>`);
    y += row;
  }
  y += gap - 18;
}
const one = (left + scale).toFixed(1), height = y + 24, {machine, cpu, runner, commit} = rows[0];
const svg = [
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`,
  ` font-family="system-ui, Helvetica, Arial, sans-serif" font-size="13" fill="${ink}" role="img" aria-label="slm2 against llama.cpp">`,
  `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="#fff" stroke="#d0d7de"/>`,
  text(20, 32, 'How many times better than llama.cpp (longer is better)', ' font-size="18" font-weight="600"'),
  text(20, 54, `${runner}, Qwen3-0.6B's shape, Q8_0 weights; llama.cpp computes in int8 beside both profiles`, ` fill="${faint}"`),
  text(20, 72, `${machine}, ${cpu}; commit ${commit}; medians of one interleaved run`, ` fill="${faint}"`),
  ...ticks.map(k => `<line x1="${left + k * scale}" y1="${top}" x2="${left + k * scale}" y2="${height - 28}" stroke="#eaeef2"/>`),
  ...body.filter(part => part.startsWith('<path')),
  `<line x1="${one}" y1="${top}" x2="${one}" y2="${height - 28}" stroke="#cf222e" stroke-dasharray="4 3"/>`,
  ...body.filter(part => !part.startsWith('<path')),
  ...ticks.slice(1).filter(k => k > 1).map(k => text(left + k * scale, height - 12, `${k} x`, ` fill="${faint}" text-anchor="middle"`)),
  text(one, height - 12, 'llama.cpp', ' fill="#cf222e" text-anchor="middle"'),
  '</svg>', ''];
writeFileSync(out, svg.join('\n'));
