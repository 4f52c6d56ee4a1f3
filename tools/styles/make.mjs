// Makes the kept files of the dashboard: the part of Tabler's style sheet that its pages use, and the icons. Run it by "make styles".
// The package lock pins versions and hashes; a test of internal/web/pages compares what is kept with SHA256SUMS.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { PurgeCSS } from 'purgecss';
import postcss from 'postcss';
import { transform } from 'lightningcss';
import subsetFont from 'subset-font';

const out = '../../internal/web/pages/static/';
const elements = `html body a abbr b bdi button caption code col colgroup dd details dialog div dl dt em fieldset figcaption figure footer form
  h1 h2 h3 h4 h5 h6 header hr img input kbd label legend li main meter nav ol optgroup option output p pre search section select small span strong
  summary svg table tbody td textarea tfoot th thead time tr u ul hidden disabled type checkbox date number password radio search submit text`;
const components = 'btn card form-control form-select form-check-input';

const whole = fs.readFileSync('node_modules/@tabler/core/dist/css/tabler.css', 'utf8');
const [purged] = await new PurgeCSS().purge({
  content: [{ raw: `${elements} ${components}`, extension: 'txt' }], css: [{ raw: whole }], keyframes: true, fontFace: true,
  defaultExtractor: (text) => text.match(/[\w-]+/g) ?? [],
});
const root = postcss.parse(purged.css);
root.walkAtRules('media', (rule) => { if (/print/.test(rule.params)) rule.remove(); });
// The colours follow the system: what answers to an attribute or class of a theme is of no use, and neither is what is drawn by data.
root.walkRules((rule) => {
  const kept = rule.selectors.filter((s) => !/data-(bs-)?theme|theme-dark|navbar/.test(s));
  if (kept.length) rule.selectors = kept; else rule.remove();
});
root.walkDecls((decl) => { if (/url\(["']?data:/.test(decl.value)) decl.remove(); });
const own = fs.readFileSync(out + 'app.css', 'utf8');
for (let removed = true; removed;) {
  removed = false;
  const read = new Set([...(root.toString() + own).matchAll(/var\(\s*(--[\w-]+)/g)].map((m) => m[1]));
  root.walkDecls(/^--/, (decl) => { if (!read.has(decl.prop)) { decl.remove(); removed = true; } });
}
root.walkRules((rule) => { if (!rule.nodes.length) rule.remove(); });
root.walkAtRules((rule) => { if (rule.nodes && !rule.nodes.length) rule.remove(); });
const { code } = transform({
  filename: 'tabler.css', code: Buffer.from(root.toString()), minify: true, targets: { chrome: 123 << 16, firefox: 121 << 16, safari: (17 << 16) | (5 << 8) },
});
fs.writeFileSync(out + 'tabler.css', `/*! Tabler 1.6.1, MIT, the parts that the pages use; see tabler.LICENSE */\n${code}\n`);

// Each line of icons.txt is a name and what is drawn.
const names = fs.readFileSync('icons', 'utf8').split(/\s+/).filter(Boolean).sort();
const draw = (name) => fs.readFileSync(`node_modules/@tabler/icons/icons/outline/${name}.svg`, 'utf8').match(/<path[\s\S]*(?=<\/svg>)/)[0]
  .replace(/<path stroke="none"[^>]*\/>/, '').replace(/\s*\n\s*/g, '').replace(/ \/>/g, '/>');
fs.writeFileSync(out + 'icons.txt', names.map((name) => `${name} ${draw(name)}\n`).join(''));

// The letters of western Europe, of the weights that pages use.
const letters = (from, to) => String.fromCodePoint(...Array.from({ length: to - from }, (_, i) => from + i));
const inter = fs.readFileSync('node_modules/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2');
fs.writeFileSync(out + 'inter.woff2', await subsetFont(inter, letters(0x20, 0x7f) + letters(0xa0, 0x100) + '·…–—“”‘’→←↑↓×−•€', {
  targetFormat: 'woff2', variationAxes: { wght: { min: 400, max: 700, default: 400 } },
}));

const kept = ['htmx.min.js', 'idiomorph.min.js', 'icons.txt', 'inter.woff2', 'tabler.css'];
fs.writeFileSync(out + 'SHA256SUMS', kept.map((file) => `${createHash('sha256').update(fs.readFileSync(out + file)).digest('hex')}  ${file}\n`).join(''));
