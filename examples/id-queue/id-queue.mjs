// Pictures by their ids: a producer adds them, three consumers handle them. The first dies with a picture in
// its hands; its time runs out there, and exactly one of the others takes it over.
//
//   node examples/id-queue/id-queue.mjs [--ids 30] [--timeout-ms 500]
//   node examples/id-queue/id-queue.mjs [--redis redis://…]       (default: REDIS_URL, or embedded)
//
// Prints a line for each picture, and the counts.

import { resolveRedisUrl } from '@piecework/embedded';
import { Command } from 'commander';
import { nanoid } from 'nanoid';
import { IdQueue } from 'piecework';
import { integer, redis as redisUrl } from '../option-values.mjs';

const { ids, timeoutMs, ...given } = new Command('id-queue')
  .description('A queue of ids with states')
  .option('--redis <url>', 'default: REDIS_URL, or embedded', redisUrl)
  .option('--ids <n>', 'how many pictures', integer(4, 100_000), 30)
  .option('--timeout-ms <ms>', 'how long one may be in one hand', integer(50, 60_000), 500)
  .allowExcessArguments(false)
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts();

const redis = given.redis
  ? { url: given.redis }
  : await resolveRedisUrl({ onStatus: (text) => console.error(text) });
const name = `pictures-${nanoid(8)}`;
// A consumer joins by name, wherever it runs; here each has its own object, as if it were far away.
const join = () => IdQueue.join(name, { redis: redis.url, timeoutMs });

async function consume(who, diesAt) {
  const queue = await join();
  let pulled = 0;
  for await (const { id, key, attempt } of queue.references()) {
    pulled += 1;
    if (pulled === diesAt) break; // With the picture in its hands: neither done nor failed.
    if (Number(id) % 10 === 7) await queue.fail(key, `picture ${id} cannot be read`);
    else await queue.done(key);
    console.log(`${who} handled ${id}${attempt > 1 ? `, attempt ${attempt}` : ''}`);
  }
  await queue.close();
}

const queue = await join();
try {
  const pending = await queue.add(Array.from({ length: ids }, (_, i) => String(i)));
  console.log(`${pending} pending`);
  await consume('the mortal', 1);
  await Promise.all([consume('one'), consume('two')]);
  const counts = await queue.counts();
  const last = await queue.lastFailure();
  console.log(`${counts.completed} completed, ${counts.failures} of them failed: ${last?.message}`);
  process.exitCode = counts.completed === ids && counts.running === 0 ? 0 : 1;
} finally {
  await queue.drop();
  await queue.close();
  await redis.close?.();
}
