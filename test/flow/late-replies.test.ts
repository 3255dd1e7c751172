import { IdQueue } from '@piecework/queues';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { test as flowTest, gate } from '../support/flow.js';
import { HeldReplies } from '../support/held-replies.js';
import { testRedis } from '../support/redis.js';
import { test } from '../support/timed.js';
import { until } from '../support/until.js';

useTestClock();

/** Over before the reply is handed out. */
const SHORT_MS = 100;

test('an item whose take is answered after its lease is not handed out under that lease', {
  tags: 'one-server',
}, async ({ timed }) => {
  const client = new HeldReplies((await testRedis()).url, 'timed-take');
  timed.after(() => client.disconnect());
  const queue = timed.retryQueue<string>({ redis: client });
  const key = await queue.put('late');
  const held = gate();
  client.held = held.opened;
  const items = queue.items({ leaseMs: SHORT_MS, pollMs: 5 });
  const next = items.next();
  await until(() => client.came > 0);
  const taken = performance.now();
  await until(() => performance.now() - taken > SHORT_MS);
  const { leases } = timed.commands('retry').keys;
  const [, , ends] = String(await timed.connection.client.hget(leases, key)).split(' ');
  client.held = undefined;
  // By the scripts' clock its first lease is over as well.
  moveClock(SHORT_MS);
  held.open();
  let { value: item } = await next;
  expect(item?.leasedUntil).toBeGreaterThan(Number(ends));
  // On a slow machine the next lease is over too.
  while (item && !(await item.done())) item = (await items.next()).value;
  await items.return();
});

flowTest(
  'a pull of ids that is answered after the timeout says that the item timed out',
  {
    tags: 'one-server',
  },
  async ({ flow }) => {
    const client = new HeldReplies((await testRedis()).url, 'id-pull');
    flow.after(() => client.disconnect());
    const queue = await IdQueue.join(flow.queue, { redis: client, timeoutMs: SHORT_MS });
    await queue.add('late');
    const held = gate();
    client.held = held.opened;
    const pulled = queue.pull();
    await until(() => client.came > 0);
    const asked = performance.now();
    await until(() => performance.now() - asked > SHORT_MS);
    client.held = undefined;
    held.open();
    const reference = await pulled;
    expect(reference).toMatchObject({ state: 'timed-out', id: 'late', attempt: 1 });
    moveClock(SHORT_MS);
    expect(await queue.resume(reference.key ?? '')).toMatchObject({ state: 'ready', attempt: 2 });
    await queue.drop();
  },
);
