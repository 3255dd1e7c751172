// Works requests off in several processes and prints how many sub-requests a second they handle.
//
//   node examples/throughput/consumer.mjs --redis redis://localhost --processes 2 --slots 100
import { fileURLToPath } from 'node:url';
import { integer } from '../option-values.mjs';
import { optionsOf, programOf } from './arguments.mjs';
import { Processes } from './processes.mjs';
import { printRates } from './rates.mjs';

const IDLE_SECONDS = 2;

const program = programOf('consumer.mjs', 'Handles sub-requests and prints rates; Ctrl-C ends it.')
  .option('--slots <n>', 'sub-requests at once in each process', integer(1, 10_000), 100)
  .option('--handler-ms <ms>', 'how long each of them takes', integer(0, 3_600_000), 0)
  .option(
    '--exit-when-idle [seconds]',
    `end when, after the first, none was handled for so long (${IDLE_SECONDS} if not given)`,
    integer(1, 86_400),
  );
const { processes, exitWhenIdle, ...options } = optionsOf(program);
const idleMs = 1_000 * (exitWhenIdle === true ? IDLE_SECONDS : (exitWhenIdle ?? 0));

const consumers = new Processes(
  fileURLToPath(new URL('./consumer-process.mjs', import.meta.url)),
  Array.from({ length: processes }, () => options),
);
const stop = () => void consumers.stop();
// A second one finds no listener and ends the program at once; its children end with it.
for (const name of ['SIGINT', 'SIGTERM']) process.once(name, stop);

let last = { total: 0, atMs: performance.now() };
const watch = setInterval(() => {
  const { total } = consumers;
  if (total !== last.total) last = { total, atMs: performance.now() };
  if (idleMs > 0 && total > 0 && performance.now() - last.atMs >= idleMs) stop();
}, 100);

const endRates = printRates('handled', () => consumers.total);
try {
  await consumers.ended;
} catch (error) {
  console.error(`consumer: ${error.message}`);
  process.exitCode = 1;
} finally {
  clearInterval(watch);
  await consumers.stop();
  endRates();
}
