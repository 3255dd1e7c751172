// Delivers messages to a receiver that is often down: each failed delivery comes again, later each time, and
// after the fourth failure is given up. A token bucket lets no more than a few attempts a second through.
//
//   node examples/retry-queue/retry-queue.mjs [--redis redis://…]       (default: REDIS_URL, or embedded)
import { parseArgs } from 'node:util';
import { resolveRedisUrl } from '@piecework/embedded';
import { nanoid } from 'nanoid';
import { RetryQueue } from 'piecework';

const { values } = parseArgs({ options: { redis: { type: 'string' } } });
const MESSAGES = 12;
const MAX_FAILURES = 4;

/** 20 attempts a second over all consumers, 5 at once at most. It deducts exactly what it grants. */
const bucket = {
  keys: ['bucket'],
  lua: `
    local v = redis.call('HMGET', keys[1], 'tokens', 'at')
    local at = math.max(now, tonumber(v[2]) or now)
    local tokens = math.min(5, (tonumber(v[1]) or 5) + (at - (tonumber(v[2]) or at)) * 20 / 1000)
    local granted = math.min(wanted, math.floor(tokens))
    redis.call('HSET', keys[1], 'tokens', tokens - granted, 'at', at)
    redis.call('PEXPIRE', keys[1], 60000)
    return granted, 50`,
};

/** Every third message is never accepted, every other one at the second attempt. */
async function deliver({ number }, { numFailures }) {
  if (number % 3 === 0) throw new Error('503 for ever');
  if (number % 2 === 0 && numFailures < 1) throw new Error('503');
  console.log(`message ${number} delivered at attempt ${numFailures + 1}`);
}

const server = values.redis ? { url: values.redis } : await resolveRedisUrl();
const queue = new RetryQueue({
  redis: server.url,
  name: `example-${nanoid(8)}`,
  condition: bucket,
});
const over = new AbortController();
const consuming = queue.consume(deliver, {
  demand: 3,
  maxFailures: MAX_FAILURES,
  retryDelayMs: (numFailures) => 50 * 2 ** numFailures,
  signal: over.signal,
});
for (let number = 1; number <= MESSAGES; number += 1) await queue.put({ number });

const timer = setInterval(async () => {
  const { waiting, leased } = await queue.counts();
  if (waiting + leased === 0) over.abort();
}, 100);
await consuming;
clearInterval(timer);
for await (const { payload, numFailures, message } of queue.failures())
  console.log(`message ${payload.number} given up after ${numFailures} failures: ${message}`);
await queue.drop();
await queue.close();
await server.close?.();
