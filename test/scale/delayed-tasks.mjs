// Delayed and undelayed tasks of all priorities through one slot: their order, without exception.
//
//   node test/scale/delayed-tasks.mjs [--tasks 50000] [--live 10000] [--delay-ms 5000] [--json]
//
// Two processes put --tasks tasks in, half of them delayed by up to --delay-ms, and move what is due. When
// all are in and moved a worker with one slot starts, and --live more are put in while it works. The order
// is judged from Redis' append-only file (delayed-order.mjs). Exit code 1 when anything is out of order.
import { parseArgs } from 'node:util';
import { runDelayedTasks, wrongIn } from './delayed-run.mjs';

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '50000' },
    live: { type: 'string', default: '10000' },
    'delay-ms': { type: 'string', default: '5000' },
    json: { type: 'boolean', default: false },
  },
});
const size = { before: Number(values.tasks), live: Number(values.live) };
const began = performance.now();
const say = (text) =>
  console.error(`${((performance.now() - began) / 1_000).toFixed(1).padStart(6)} s  ${text}`);
const run = await runDelayedTasks({ ...size, delayMs: Number(values['delay-ms']), say });
const wrong = wrongIn(run, size);
const { moved, ranMeanwhile, recorded, pops } = run;
const figures = {
  ...{ tasks: recorded.length, pops: pops.length, delayedBefore: moved, ranMeanwhile },
  delayed: pops.filter(({ due }) => due > 0).length,
  priorities: new Set(pops.map(({ priority }) => priority)).size,
  outOfOrder: wrong.length,
};
if (values.json) console.log(JSON.stringify({ ...figures, wrong: wrong.slice(0, 20) }));
else {
  console.log(figures);
  for (const line of wrong.slice(0, 20)) console.log(line);
}
process.exitCode = wrong.length > 0 ? 1 : 0;
