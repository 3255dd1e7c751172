import { setTimeout as sleep } from 'node:timers/promises';
import { startCluster } from '@piecework/embedded';
import keySlot from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { nanoid } from 'nanoid';
import type { Figure, Row } from '../figure/figure.js';
import { medianRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import { redisFigures } from '../redis-figures.js';

const HANDLERS_MS = [0, 5, 50, 500] as const;
const SLOTS = 100;
const MASTERS = 3;

/** A cluster whose first two nodes are distinguished by the keys they have. */
interface TwoSides {
  readonly redis: { nodes: { host: string; port: number }[] };
  readonly queueSide: Redis;
  readonly requestSide: Redis;
}

/**
 * The queue side is the one place that a queue has only once; the requests' side spreads over all
 * masters. Its share of the work says how far a queue can grow.
 */
export const queueShare: Figure = {
  title: 'Share of the queue’s side in Redis’ CPU',
  definition:
    'CPU of the server that holds the queue’s hash slot over that of both servers, the queue’s and the requests’; the time from submission to completion, less what each needs when nothing happens.',
  method: `A cluster of ${MASTERS} masters. The name of the queue is chosen so that the first holds it, the ids of the requests so that the second holds them all: scripts touch one hash slot only, so each server’s CPU is one side’s. One worker, ${SLOTS} slots, the default time slice; one request alone, or two that take turns; handlers wait idle for 0, 5, 50 and 500 ms.`,
  target: '≤ 5 % with handlers of 0 and 5 ms; beyond, reported',

  async measure(fixture): Promise<Row[]> {
    await using cluster = await startCluster({
      password: '',
      masters: MASTERS,
      replicasPerMaster: 0,
    });
    const { nodes } = cluster;
    const [first, second] = nodes as [(typeof nodes)[number], (typeof nodes)[number]];
    const sides: TwoSides = {
      redis: { nodes: nodes.map(({ host, port }) => ({ host, port })) },
      queueSide: new Redis(first.port, first.host),
      requestSide: new Redis(second.port, second.host),
    };
    try {
      return await measureSides(fixture, sides);
    } finally {
      sides.queueSide.disconnect();
      sides.requestSide.disconnect();
    }
  },
};

async function measureSides(fixture: Fixture, sides: TwoSides): Promise<Row[]> {
  const idleMs = fixture.of(5_000, 3_000, 500);
  const before = await cpuOf(sides);
  await sleep(idleMs);
  const after = await cpuOf(sides);
  // Nodes of a cluster talk to each other all the time.
  const idlePerMs = after.map((micros, i) => (micros - (before[i] ?? 0)) / idleMs);
  const rows: Row[] = [];
  const kinds = HANDLERS_MS.flatMap((sleepMs) =>
    [1, 2].map((requests) => ({ sleepMs, requests, each: countFor(fixture, sleepMs) / requests })),
  );
  for (const kind of kinds) {
    const { sleepMs, requests } = kind;
    const shares: number[] = [];
    for (let round = 0; round < fixture.settings.rounds; round += 1) {
      shares.push(100 * (await shareOf(fixture, sides, kind, idlePerMs)));
    }
    const label = `handlers of ${sleepMs} ms, ${requests === 1 ? 'one request' : 'two take turns'}`;
    fixture.say(`queue-share: ${label}`);
    rows.push(
      medianRow(
        label,
        '% of Redis CPU',
        shares,
        sleepMs <= 5
          ? { target: { atMost: 5 } }
          : {
              note: 'a handler longer than the slice ends one: asking, and leaving, cost the same for less work',
            },
      ),
    );
  }
  return rows;
}

async function shareOf(
  fixture: Fixture,
  sides: TwoSides,
  { sleepMs, requests, each }: { sleepMs: number; requests: number; each: number },
  idlePerMs: readonly number[],
): Promise<number> {
  const queue = nameOn(await slotsOf(sides.queueSide), 'bench');
  const pw = fixture.piecework(queue, sides.redis);
  await fixture.startWorker({ redis: sides.redis, queue, concurrency: SLOTS });
  const requestSlots = await slotsOf(sides.requestSide);
  const work = async (size: number) => {
    const submitted = Array.from({ length: requests }, () =>
      pw.submit(fixture.payloads(size, { sleepMs }), {
        id: nameOn(requestSlots, 'request'),
        limit: SLOTS,
        results: 'discard',
      }),
    );
    for (const request of await Promise.all(submitted)) await request.completion();
  };
  await work(SLOTS);
  const before = await cpuOf(sides);
  const startMs = performance.now();
  await work(each);
  const elapsedMs = performance.now() - startMs;
  const after = await cpuOf(sides);
  const [queueMicros = 0, requestMicros = 0] = after.map(
    (micros, i) => micros - (before[i] ?? 0) - (idlePerMs[i] ?? 0) * elapsedMs,
  );
  await fixture.clear();
  return Math.max(0, queueMicros) / (Math.max(0, queueMicros) + Math.max(1, requestMicros));
}

/** So many, of all requests together, that a round lasts some seconds. */
function countFor(fixture: Fixture, sleepMs: number): number {
  const atMost = fixture.of(100_000, 30_000, 1_000);
  if (sleepMs === 0) return atMost;
  const seconds = fixture.of(6, 2, 0.2);
  const turns = Math.ceil((1_000 * seconds) / sleepMs);
  return Math.min(atMost, turns * SLOTS);
}

async function cpuOf({ queueSide, requestSide }: TwoSides): Promise<number[]> {
  const figures = [await redisFigures(queueSide), await redisFigures(requestSide)];
  return figures.map(({ cpuMicros }) => cpuMicros);
}

/** The hash slots that a server holds. */
async function slotsOf(node: Redis): Promise<(slot: number) => boolean> {
  const line = String(await node.cluster('NODES'))
    .split('\n')
    .find((each) => each.includes('myself'));
  const ranges = (line ?? '')
    .split(' ')
    .slice(8)
    .map((range) => range.split('-').map(Number));
  return (slot) => ranges.some(([from = 0, to = from]) => slot >= from && slot <= to);
}

function nameOn(holds: (slot: number) => boolean, prefix: string): string {
  for (;;) {
    const name = `${prefix}-${nanoid(8)}`;
    if (holds(keySlot(name))) return name;
  }
}
