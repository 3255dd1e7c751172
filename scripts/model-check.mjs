// Checks the SPIN model of the protocol (test/model): every configuration must hold in all its states and end, and
// every variant (a cure switched off) must fail. `--size full` adds the large configurations; `--size small` checks
// only those that the tests check. Exits with 1 when a result is wrong, with 2 when SPIN or cc is missing.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import pMap from 'p-map';
import { check, findTools } from '../test/model/spin.mjs';
import { configurations, variants } from '../test/model/variants.mjs';

const { values } = parseArgs({ options: { size: { type: 'string', default: 'medium' } } });
const SIZES = ['small', 'medium', 'full'];
if (!SIZES.includes(values.size)) {
  console.error(`--size is small, medium or full, not ${values.size}`);
  process.exit(2);
}
const tools = await findTools();
if (typeof tools === 'string') {
  console.error(`nothing was checked: ${tools}`);
  process.exit(2);
}
const upTo = SIZES.slice(0, SIZES.indexOf(values.size) + 1);
const chosen = configurations.filter(({ size }) => upTo.includes(size));
const ours = variants.filter(({ configuration }) =>
  chosen.some((one) => one.name === configuration),
);
// Each of the large configurations needs all of the memory.
const concurrency = values.size === 'full' ? 1 : Math.min(2, availableParallelism());
const shape = { chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' } };

async function holds({ name, faults, flags, size }) {
  const it = await check(tools, flags, { large: size === 'full' });
  const good = it.errors === 0 && it.whole;
  const verdict = good ? 'holds' : `FAILS ${it.whole ? it.violated : 'not gone through'}`;
  console.error(`${name}: ${verdict}`);
  const { states, transitions, depth, memoryMb, seconds } = it;
  return { good, row: [name, faults, states, transitions, depth, memoryMb, seconds, verdict] };
}

async function fails({ cure, flag, configuration }) {
  const { flags } = chosen.find(({ name }) => name === configuration);
  const { errors, violated, trail } = await check(tools, [...flags, flag], { variant: true });
  const good = errors > 0 && trail && violated !== '';
  const what = good ? violated.slice(0, 70) : 'NOTHING FAILS';
  console.error(`without ${cure}: ${what}`);
  return { good, row: [cure, configuration, what] };
}

const held = await pMap(chosen, holds, { concurrency });
const failed = await pMap(ours, fails, { concurrency });
const all = new Table({
  ...shape,
  head: ['configuration', 'faults', 'states', 'transitions', 'depth', 'MB', 's', 'verdict'],
});
all.push(...held.map(({ row }) => row));
console.log(all.toString());
const without = new Table({ ...shape, head: ['without', 'configuration', 'what fails'] });
without.push(...failed.map(({ row }) => row));
console.log(without.toString());
const wrong = [...held, ...failed].filter(({ good }) => !good).length;
console.log(`${chosen.length} configurations, ${ours.length} variants, ${wrong} wrong`);
if (wrong > 0) process.exitCode = 1;
