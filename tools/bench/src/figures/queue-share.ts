import { setTimeout as sleep } from 'node:timers/promises';
import { startCluster } from '@piecework/embedded';
import keySlot from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { nanoid } from 'nanoid';
import { redisFigures } from '../redis-figures.js';
import type { Figure, Row } from './figure.js';
import type { Ground } from './ground.js';
import { medianRow } from './rows.js';

const HANDLERS_MS = [0, 5, 50, 500] as const;
const SLOTS = 100;
const MASTERS = 3;

/** A cluster whose first two nodes are told apart by what they hold. */
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

  async measure(ground): Promise<Row[]> {
    await using cluster = await startCluster({ masters: MASTERS, replicasPerMaster: 0 });
    const { nodes } = cluster;
    const [first, second] = nodes as [(typeof nodes)[number], (typeof nodes)[number]];
    const sides: TwoSides = {
      redis: { nodes: nodes.map(({ host, port }) => ({ host, port })) },
      queueSide: new Redis(first.port, first.host),
      requestSide: new Redis(second.port, second.host),
    };
    try {
      return await measureSides(ground, sides);
    } finally {
      sides.queueSide.disconnect();
      sides.requestSide.disconnect();
    }
  },
};

async function measureSides(ground: Ground, sides: TwoSides): Promise<Row[]> {
  const idleMs = ground.of(5_000, 3_000, 500);
  const before = await cpuOf(sides);
  await sleep(idleMs);
  const after = await cpuOf(sides);
  // Nodes of a cluster talk to each other all the time.
  const idlePerMs = after.map((micros, i) => (micros - (before[i] ?? 0)) / idleMs);
  const rows: Row[] = [];
  const kinds = HANDLERS_MS.flatMap((sleepMs) =>
    [1, 2].map((requests) => ({ sleepMs, requests, each: countFor(ground, sleepMs) / requests })),
  );
  for (const kind of kinds) {
    const { sleepMs, requests } = kind;
    const shares: number[] = [];
    for (let round = 0; round < ground.settings.rounds; round += 1) {
      shares.push(100 * (await shareOf(ground, sides, kind, idlePerMs)));
    }
    const label = `handlers of ${sleepMs} ms, ${requests === 1 ? 'one request' : 'two take turns'}`;
    ground.say(`queue-share: ${label}`);
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
  ground: Ground,
  sides: TwoSides,
  { sleepMs, requests, each }: { sleepMs: number; requests: number; each: number },
  idlePerMs: readonly number[],
): Promise<number> {
  const queue = nameOn(await slotsOf(sides.queueSide), 'bench');
  const pw = ground.piecework(queue, sides.redis);
  await ground.startWorker({ redis: sides.redis, queue, concurrency: SLOTS });
  const requestSlots = await slotsOf(sides.requestSide);
  const work = async (size: number) => {
    const submitted = Array.from({ length: requests }, () =>
      pw.submit(ground.deeds(size, { sleepMs }), {
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
  await ground.clear();
  return Math.max(0, queueMicros) / (Math.max(0, queueMicros) + Math.max(1, requestMicros));
}

/** So many, of all requests together, that a round lasts some seconds. */
function countFor(ground: Ground, sleepMs: number): number {
  const atMost = ground.of(100_000, 30_000, 1_000);
  if (sleepMs === 0) return atMost;
  const seconds = ground.of(6, 2, 0.2);
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
