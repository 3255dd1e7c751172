import { Connection, QueueCommands, requestKeys, WorkerCommands } from '@piecework/protocol';
import type { Piecework } from 'piecework';
import type { Figure, Row } from '../figure/figure.js';
import { medianRow, ratioRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import { until } from '../fixture/until.js';

const HOUR_MS = 3_600_000;
/** The two that stay: one runs on and on, one failed and is due in an hour. */
const HELD = 2;

interface Held {
  readonly waitingBytes: number;
  readonly endBytes: number;
  readonly entries: number;
}

/**
 * A stream frees whole nodes from its beginning only. What the oldest unsettled entry pins is the
 * question, so the two that stay are the first two.
 */
export const straggler: Figure = {
  title: 'Memory held by one straggler and one retry due in an hour',
  definition:
    'Bytes of all keys of the request when all but these two are settled, less those of the same request without them, over what the request held when all of it waited; results discarded.',
  method:
    'MEMORY USAGE … SAMPLES 0 of every key. The request stays unsealed, so that it cannot complete, in both cases. A worker that the bench plays by the protocol’s own calls takes the first two entries, fails one with a delay of an hour and keeps the other; a worker process does the rest.',
  target: '≤ 2 % more',

  async measure(fixture): Promise<Row[]> {
    const count = fixture.of(1_000_000, 100_000, 2_000);
    // Bytes, not times: they come out alike in every round.
    const without = await hold(fixture, count, false);
    const held = await hold(fixture, count, true);
    const extra = held.endBytes - without.endBytes;
    const kib = (bytes: number) => [bytes / 1024];
    return [
      {
        ...medianRow('more with the two, of all that waited', '%', [
          (100 * extra) / without.waitingBytes,
        ]),
        target: { atMost: 2 },
        note: `${count} sub-requests; when the oldest one is 4,096 behind, what is settled behind it is deleted entry by entry, before and from then on`,
      },
      medianRow('all waiting', 'KiB', kib(without.waitingBytes)),
      medianRow('at the end, without', 'KiB', kib(without.endBytes), {
        note: `${without.entries} entries in the stream`,
      }),
      medianRow('at the end, with the two', 'KiB', kib(held.endBytes), {
        note: `${held.entries} entries in the stream`,
      }),
      {
        ...ratioRow('at the end, with ÷ without', [held.endBytes], [without.endBytes]),
        note: 'not judged: without them next to nothing is left to compare with',
      },
    ];
  },
};

async function hold(fixture: Fixture, count: number, withTwo: boolean): Promise<Held> {
  const { server, settings } = fixture;
  await server.probe.flushall();
  const queue = fixture.newQueue();
  const pw = fixture.piecework(queue);
  const limit = settings.concurrency + HELD;
  const open = await pw.open({ results: 'discard', limit });
  for (const payload of fixture.payloads(count)) await open.append(payload);
  await open.flush();
  const waitingBytes = await bytesOf(fixture, open.id);
  const connection = Connection.open(fixture.url);
  try {
    if (withTwo) await takeTwo(fixture, connection, queue, open);
    await fixture.startWorker({ queue, concurrency: settings.concurrency });
    const settled = withTwo ? count - HELD : count;
    await until(async () => (await settledOf(pw, open.id)) === settled);
    const entries = await server.probe.xlen(requestKeys(open.id).work);
    return { waitingBytes, endBytes: await bytesOf(fixture, open.id), entries };
  } finally {
    await connection.close();
    await fixture.clear();
  }
}

/** The place of a worker that has one long run and one failed one. */
async function takeTwo(
  { server }: Fixture,
  connection: Connection,
  queue: string,
  { id, generation }: { id: string; generation: number },
): Promise<void> {
  const commands = new WorkerCommands(connection, id);
  const worker = 'bench-holder';
  // Requests have one attempt by default, and a last attempt is not delayed.
  await server.probe.hset(requestKeys(id).request, 'attempts', 2);
  await commands.enter({
    generation,
    worker,
    op: 1,
    want: HELD,
    leaseMs: HOUR_MS,
    tasks: '*',
    epochs: [],
  });
  const entries = await commands.read(worker, HELD);
  if (entries === 'gone' || entries.length < HELD) throw new Error('two entries were to be read');
  const failed = {
    entry: entries[1]?.entry ?? '',
    kind: 'f',
    value: '{}',
    delayMs: HOUR_MS,
  } as const;
  const kept = { op: 2, leaseMs: HOUR_MS, keep: 1, running: 1, read: 0 };
  const { settled } = await commands.settle(generation, worker, kept, [failed]);
  if (settled.verdict !== 'ok') throw new Error(`settled: ${settled.verdict}`);
  const { mint, epoch, priority } = settled;
  if (mint > 0)
    await new QueueCommands(connection, queue).push({ id, generation, mint, epoch, priority });
}

async function settledOf(pw: Piecework, id: string): Promise<number> {
  const { counts } = await pw.request(id).status();
  return counts.succeeded + counts.failed + counts.cancelled;
}

async function bytesOf({ server }: Fixture, id: string): Promise<number> {
  const { request, work, due, tries, progress, failed, results } = requestKeys(id);
  let bytes = 0;
  for (const key of [request, work, due, tries, progress, failed, results]) {
    bytes += (await server.probe.memory('USAGE', key, 'SAMPLES', 0)) ?? 0;
  }
  return bytes;
}
