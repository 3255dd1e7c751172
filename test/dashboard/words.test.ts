/**
 * What the dashboard says of a request that does not move, and of leases that the doctor does not like.
 */
import { Privacy, QueueSource } from '@piecework/views';
import { beforeAll, expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { type Flow, test } from '../support/flow.js';
import { connected, given, Hand, LEASE_MS, success } from '../support/given.js';
import { until } from '../support/until.js';

useTestClock();
// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

function sourceOf({ redis, queue, after }: Flow): QueueSource {
  const addresses = { without: (text: string) => text };
  const source = new QueueSource(redis, { name: queue }, new Privacy({}), addresses, () => {});
  after(() => source.close());
  return source;
}

/** The row of a request, read anew. */
async function rowOf(source: QueueSource, id: string) {
  source.changed();
  return (await source.request(id)).row;
}

const dropped = async ({
  request,
  queue,
  id,
  generation,
}: Awaited<ReturnType<typeof given.sealed>>) => {
  await request.drop();
  await queue.finish(id, generation, 'dropped');
};

test('a request whose worker is silent says when others take over', async ({ flow }) => {
  const source = sourceOf(flow);
  const scene = await given.sealed({ queue: flow.queue, items: 9, limit: 9 });
  await new Hand(scene, 'dead').hold(3);
  expect(await rowOf(source, scene.id)).toMatchObject({ waitingFor: '' });
  moveClock(13_000);
  const row = await rowOf(source, scene.id);
  expect(row.waitingFor).toBe('lease');
  expect(row.why).toMatch(
    /^3 are on a worker last seen 1\d s ago; taken over in about 1\d s\. Start another worker/,
  );
  await dropped(scene);
});

test('a request that waits for its producer says since when, what follows, and what to do', async ({
  flow,
}) => {
  const source = sourceOf(flow);
  const lease = { producerLeaseMs: LEASE_MS, onProducerLost: 'cancel' } as const;
  const scene = await given.filled({ queue: flow.queue, items: 1, ...lease });
  const hand = new Hand(scene);
  const [entry] = await hand.hold(1);
  await hand.settle([success(entry!)]);
  moveClock(20_000);
  const row = await rowOf(source, scene.id);
  expect(row.waitingFor).toBe('producer');
  expect(row.why).toMatch(
    /^all that was added .*; its producer was last seen 2\d s ago; cancelled in about \d+ s\. Cancel the request if nothing more comes$/,
  );
  await dropped(scene);
});

test('leases that lie ahead of the clock, of a worker and of a producer, are findings with a cure', async ({
  flow,
}) => {
  const source = sourceOf(flow);
  const sealed = await given.sealed({ queue: flow.queue, items: 1, limit: 1 });
  await new Hand(sealed, 'dead').hold(1);
  const open = await given.filled({
    ...{ queue: flow.queue, items: 1, producerLeaseMs: LEASE_MS, onProducerLost: 'cancel' },
  });
  const later = Date.now() + 3_600_000;
  const { client } = sealed.connection;
  await client.hset(sealed.request.keys.request, 'lease:dead', later);
  await client.hset(open.request.keys.request, 'producerUntil', later);
  expect(source.check()).toBe(true);
  const findings = await until(
    async () => {
      const { checks } = await source.overview();
      return checks?.busy === false && checks.findings;
    },
    { what: 'the checks have ended', timeoutMs: 45_000 },
  );
  const amiss = findings.filter(({ what }) => what.includes(sealed.id) || what.includes(open.id));
  const cure = expect.stringContaining('clock');
  expect(amiss).toContainEqual({
    ...{ level: 'warning', cure },
    what: `${sealed.id}: leases that end later than their duration allows: dead`,
  });
  expect(amiss).toContainEqual({
    ...{ level: 'warning', cure },
    what: `${open.id}: the lease of its producer ends later than its duration allows`,
  });
  await dropped(sealed);
  await dropped(open);
});
