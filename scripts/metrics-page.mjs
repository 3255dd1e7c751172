// Writes the tables of docs/metrics.md from the definitions in packages/metrics. With --check it writes nothing and fails
// when they are not up to date. Reads the built package: run `npm run build` before.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { sources } from '../packages/metrics/dist/index.js';

const page = fileURLToPath(new URL('../docs/metrics.md', import.meta.url));
const BEGIN = '<!-- Written by npm run metrics -->\n';

/** One metric: a heading that can be linked to, its sentence, and what there is to know. */
function entryOf({ name, type, help, labels, buckets, note }) {
  const facts = [
    `${type[0].toUpperCase()}${type.slice(1)}`,
    labels.length > 0 ? `labels ${labels.map((label) => `\`${label}\``).join(', ')}` : 'no labels',
    ...(buckets ? [`buckets ${buckets.join(', ')}`] : []),
  ];
  return [`### \`${name}\``, help, `${facts.join('; ')}.`, ...(note ? [note] : [])].join('\n\n');
}

const tables = sources.map(({ title, about, definitions }) =>
  [`## ${title}`, about, ...definitions.map(entryOf)].join('\n\n'),
);
const found = readFileSync(page, 'utf8');
const [written] = found.split(BEGIN);
const whole = `${written}${BEGIN}\n${tables.join('\n\n')}\n`;
if (found === whole) {
  console.log('metrics.md is fresh');
} else if (process.argv.includes('--check')) {
  console.error('docs/metrics.md is stale: run `npm run metrics` and commit it');
  process.exitCode = 1;
} else {
  writeFileSync(page, whole);
  console.log('wrote docs/metrics.md');
}
