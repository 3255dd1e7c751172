// Many workers in one process, for dashboard-time.mjs: node dashboard-workers.mjs URL N
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'piecework';

const [, , redis, n] = process.argv;
const logger = { child: () => logger };
for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal']) logger[level] = () => {};
/** What they run does not end. */
const work = { task: 'work', run: (_, { signal }) => sleep(86_400_000, undefined, { signal }) };
const workers = Array.from(
  { length: Number(n) },
  () => new Worker({ redis, handlers: [work], concurrency: 10, maxBlockMs: 0, logger }),
);
for (const worker of workers) await worker.start();
process.on('message', async () => {
  await Promise.all(workers.map((worker) => worker.close({ timeoutMs: 0 })));
  process.exit();
});
process.send({});
