// A worker of whole-life.mjs. What it runs says by its number what becomes of it: every 20th fails
// at its first attempt, every 100th for good until somebody has healed the cause.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { UnrecoverableError, Worker } from 'piecework';

const [url, journal] = process.argv.slice(2);
const redis = new Redis(url);
const now = async () => {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
};
// The server's clock, so that the intervals of all processes can be laid side by side.
const offset = (await now()) - performance.now();
const at = () => performance.now() + offset;

const worker = new Worker({
  redis: url,
  concurrency: 20,
  leaseMs: 2_000,
  async handler({ n, healed }, { attempt, signal }) {
    const from = at();
    await sleep(2 + (n % 7));
    appendFileSync(journal, `${n} ${from} ${at()} ${signal.aborted ? 1 : 0}\n`);
    if (n % 100 === 7 && !healed && (await redis.get('healed')) === null)
      throw new UnrecoverableError('not before it is healed');
    if (n % 20 === 3 && attempt === 1) throw new Error('the first attempt fails');
    return n * 2;
  },
});
await worker.start();
process.on('SIGTERM', async () => {
  await worker.close({ timeoutMs: 5_000 });
  redis.disconnect();
});
