import { Agenda } from '@piecework/protocol';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { startDeafProxy } from '../support/deaf-proxy.js';
import { test } from '../support/flow.js';
import { until } from '../support/until.js';

useTestClock();

test('a worker whose blocking connection died without a word builds a new one', {
  tags: ['one-server', 'plain'],
}, async ({ flow }) => {
  if (typeof flow.redis !== 'string') throw new Error('needs one server');
  const proxy = await startDeafProxy(flow.redis);
  flow.after(() => proxy.close());
  const worker = flow.worker({ redis: proxy.url, concurrency: 1, handler: (n: number) => n });
  await worker.start();
  await until(() => proxy.pops > 0);
  proxy.deafen();
  const producer = flow.producer();
  const { id } = await producer.submit([1]);
  const { keys } = flow.queueCommands;
  await until(async () => (await flow.connection.client.llen(keys.list(50))) === 0, {
    timeoutMs: 4_000,
    what: 'the token is eaten',
  });
  await until(
    () => flow.log.lines.some(({ what }) => what.startsWith('blocking connection lost')),
    {
      what: 'the worker gives the connection up',
    },
  );
  await until(() => worker.health().ready, { what: 'it takes work again' });
  const agenda = new Agenda(flow.connection, flow.queueCommands);
  // What the old one took along is found lost, and minted again.
  await until(
    async () => {
      moveClock(3_000);
      await agenda.tick();
      return (await flow.request(id).state())?.succeeded === 1;
    },
    { everyMs: 50, what: 'the sub-request is done' },
  );
  expect(await flow.complete(id)).toMatchObject({ outcome: 'succeeded' });
  await worker.close();
});
