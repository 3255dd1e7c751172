// Checks the SPIN model of the protocol (test/model): every configuration has to hold in all its
// states and to end, every variant (a cure switched off) has to fail. `--size full`: the large
// configurations as well. Exits with 1 when one did otherwise, with 2 when there is no SPIN or cc.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import pMap from 'p-map';
import { check, findTools } from '../test/model/spin.mjs';
import { configurations, variants } from '../test/model/variants.mjs';

const { values } = parseArgs({ options: { size: { type: 'string', default: 'small' } } });
if (!['small', 'full'].includes(values.size)) {
  console.error(`--size is small or full, not ${values.size}`);
  process.exit(2);
}
const tools = await findTools();
if (typeof tools === 'string') {
  console.error(`nothing was checked: ${tools}`);
  process.exit(2);
}
const chosen = configurations.filter(({ size }) => size === 'small' || values.size === 'full');
const flagsOf = new Map(chosen.map(({ name, flags }) => [name, flags]));
const plain = { chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' } };
let wrong = 0;

const all = new Table({
  ...plain,
  head: ['configuration', 'faults', 'states', 'transitions', 'depth', 'MB', 's', 'verdict'],
});
// One after the other: the large ones need the memory.
for (const { name, faults, flags } of chosen) {
  const it = await check(tools, flags);
  const holds = it.errors === 0 && it.whole;
  if (!holds) wrong += 1;
  const verdict = holds ? 'holds' : `FAILS ${it.whole ? it.violated : 'not gone through'}`;
  const { states, transitions, depth, memoryMb, seconds } = it;
  all.push([name, faults, states, transitions, depth, memoryMb, seconds, verdict]);
}
console.log(all.toString());

const without = new Table({ ...plain, head: ['without', 'configuration', 'what fails'] });
const ours = variants.filter(({ configuration }) => flagsOf.has(configuration));
const judged = await pMap(
  ours,
  async ({ cure, flag, configuration }) => {
    const flags = [...flagsOf.get(configuration), flag];
    const { errors, violated, trail } = await check(tools, flags, { variant: true });
    const caught = errors > 0 && trail && violated !== '';
    if (!caught) wrong += 1;
    return [cure, configuration, caught ? violated.slice(0, 70) : 'NOTHING'];
  },
  { concurrency: Math.min(2, availableParallelism()) },
);
without.push(...judged);
console.log(without.toString());
console.log(`${chosen.length} configurations, ${ours.length} variants, ${wrong} wrong`);
if (wrong > 0) process.exitCode = 1;
