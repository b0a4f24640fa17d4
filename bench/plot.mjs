// Results of `make bench` as a picture: one bar a figure, slm2 against llama.cpp = 1.
//
//   node bench/plot.mjs RESULTS.csv OUT.svg
//
// Longer is better: for times and memory the bar is the inverse of the ratio. Figures without a peer have no bar.
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
const less = metric => /^(load|ttft|rss)/.test(metric);
const unit = metric => metric.startsWith('rss') ? 'MB' : less(metric) ? 'ms' : 'tok/s';
const bars = rows.map(row => ({
  label: `${row.metric}, ${row.profile}, ${row.threads} thread${row.threads === '1' ? '' : 's'}`,
  gain: less(row.metric) ? 1 / Number(row.ratio) : Number(row.ratio),
  note: `${row.value} against ${row.peer} ${unit(row.metric)}`,
  color: row.profile === 'q8' ? '#2a6fb0' : '#8aa9c4',
}));
const most = Math.min(4, Math.max(2, ...bars.map(b => b.gain))), left = 200, scale = 320 / most, row = 20, top = 54;
const height = top + bars.length * row + 26, one = left + scale;
const escape = text => text.replace(/[&<>]/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;'})[c]);
const {machine, cpu, runner, commit} = rows[0];
const svg = [
  `<svg xmlns="http://www.w3.org/2000/svg" width="820" height="${height}" viewBox="0 0 820 ${height}" font-family="sans-serif" font-size="12">`,
  `<rect width="820" height="${height}" fill="#fff"/>`,
  `<text x="10" y="20" font-size="14">${escape(runner)}: how many times better (longer is better)</text>`,
  `<text x="10" y="38" fill="#666">${escape(`${machine}, ${cpu}, commit ${commit}; medians of one interleaved run`)}</text>`,
  ...bars.flatMap((b, i) => {
    const y = top + i * row, width = Math.min(b.gain, most) * scale;
    return [
      `<text x="${left - 6}" y="${y + 13}" text-anchor="end">${escape(b.label)}</text>`,
      `<rect x="${left}" y="${y + 2}" width="${width.toFixed(1)}" height="${row - 5}" fill="${b.color}"/>`,
      `<text x="${(left + width + 5).toFixed(1)}" y="${y + 13}">${b.gain.toFixed(2)} x <tspan fill="#666">(${escape(b.note)})</tspan></text>`,
    ];
  }),
  `<line x1="${one.toFixed(1)}" y1="${top - 4}" x2="${one.toFixed(1)}" y2="${height - 22}" stroke="#c33" stroke-dasharray="3 3"/>`,
  `<text x="${one.toFixed(1)}" y="${height - 8}" fill="#c33" text-anchor="middle">1: as the peer</text>`,
  '</svg>', ''];
writeFileSync(out, svg.join('\n'));
