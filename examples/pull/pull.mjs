// Pulls the sub-requests of a queue as a stream of RxJS, some at work at once, and prints what was held.
//
//   node examples/pull/pull.mjs
//   node examples/pull/pull.mjs --items 1000 --slots 20 --at-once 5 --work-ms 10
import { setTimeout as sleep } from 'node:timers/promises';
import { resolveRedisUrl } from '@piecework/embedded';
import { Command } from 'commander';
import { nanoid } from 'nanoid';
import { Piecework, Worker } from 'piecework';
import { finalize, from, mergeMap, tap } from 'rxjs';
import { integer, redis as redisUrl } from '../option-values.mjs';

const options = new Command('pull.mjs')
  .description('Pulls sub-requests with RxJS.')
  .option('--redis <url>', 'default: REDIS_URL, or embedded', redisUrl)
  .option('--items <n>', 'sub-requests', integer(1, 1_000_000), 200)
  .option('--slots <n>', 'most that are held: given out and not settled', integer(1, 10_000), 8)
  .option('--at-once <n>', 'most at work of those that are held', integer(1, 10_000), 4)
  .option('--work-ms <ms>', 'how long each takes', integer(0, 600_000), 2)
  .allowExcessArguments(false)
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts();

const seen = { held: 0, mostHeld: 0, atWork: 0, mostAtWork: 0, failures: 0 };

/** Squares a number; every tenth fails at its first attempt. */
async function square(s) {
  seen.atWork += 1;
  seen.mostAtWork = Math.max(seen.mostAtWork, seen.atWork);
  try {
    await sleep(options.workMs, undefined, { signal: s.signal });
    if (s.index % 10 === 0 && s.attempt === 1) throw new Error('not at first');
    s.succeed(s.payload ** 2);
  } catch (error) {
    seen.failures += 1;
    s.fail(error);
  } finally {
    seen.atWork -= 1;
    seen.held -= 1;
  }
}

/** Takes until somebody unsubscribes: that also takes back what the stream has asked for. */
function squares(worker) {
  const left = new AbortController();
  return from(worker.subRequests({ signal: left.signal })).pipe(
    tap(() => {
      seen.held += 1;
      seen.mostHeld = Math.max(seen.mostHeld, seen.held);
    }),
    mergeMap(square, options.atOnce),
    finalize(() => left.abort()),
  );
}

const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) {
  process.once(name, () => stopping.abort(new Error(`stopped by ${name}`)));
}
const say = (text) => console.error(text);
const redis = options.redis
  ? { url: options.redis, close: async () => {} }
  : await resolveRedisUrl({ onStatus: say });
const queue = `pull-${nanoid(8)}`;
const pw = new Piecework({ redis: redis.url, queue });
const worker = new Worker({ redis: redis.url, queue, concurrency: options.slots });
const stream = squares(worker).subscribe({
  error: (error) => stopping.abort(error),
});
let request;
try {
  const numbers = Array.from({ length: options.items }, (_, i) => i);
  request = await pw.submit(numbers, { limit: 1_000, attempts: 2 });
  const { counts } = await request.completion({ signal: stopping.signal });
  console.log(
    `${counts.total} items: ${counts.succeeded} succeeded, ${seen.failures} failed at first`,
  );
  console.log(
    `held at most ${seen.mostHeld} of ${options.slots}, at work at most ${seen.mostAtWork}`,
  );
  process.exitCode = counts.succeeded === counts.total ? 0 : 1;
} catch (error) {
  console.error(`pull: ${stopping.signal.reason?.message ?? error.message}`);
  process.exitCode = 1;
} finally {
  stream.unsubscribe();
  // What is out is told to stop, and given back.
  await worker.close({ timeoutMs: 1_000 });
  await request?.drop();
  await pw.close();
  await redis.close();
}
