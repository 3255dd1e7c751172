import { requestKeys } from '@piecework/protocol';
import type { Figure, Row } from '../figure/figure.js';
import { medianRow, ratioRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import { REPOSITORY } from '../machine.js';
import { usedMemory } from '../redis-figures.js';
import { run } from '../run.js';
import { type Entrant, entrantsOf, orderOf } from '../series.js';

const SETTING = 'stream-node-max-bytes';
/** The server's own, and what it could be set to. */
const NODE_BYTES = [4_096, 1_024, 512] as const;

/** What the smallest request costs in memory. */
export const requestMemory: Figure = {
  title: 'Bytes of a request with one sub-request',
  definition:
    'Growth of `used_memory` for each of many requests with one sub-request: while it waits, and when it is complete, with its result kept.',
  method: `Requests of one sub-request, first with no worker, then worked off; with the server’s \`${SETTING}\` as it is (4096) and smaller. A new stream allocates a whole node at once, however little comes into it. What smaller nodes cost a big request, by a run as in the table of rates.`,
  target: 'reported',

  async measure(fixture): Promise<Row[]> {
    const { probe } = fixture.server;
    const count = fixture.of(10_000, 2_000, 50);
    const rows: Row[] = [];
    const big: Record<number, { cpu: number[]; bytes: number }> = {};
    try {
      for (const bytes of NODE_BYTES) {
        await probe.config('SET', SETTING, bytes);
        rows.push(...(await smallOnes(fixture, count, bytes)));
        big[bytes] = await bigOne(fixture);
      }
    } finally {
      await probe.config('SET', SETTING, NODE_BYTES[0]);
    }
    const [standard, ...others] = NODE_BYTES;
    const plain = big[standard] ?? { cpu: [], bytes: 0 };
    for (const bytes of NODE_BYTES)
      rows.push(
        medianRow(`big request, nodes of ${bytes}`, 'bytes per sub-request', [
          big[bytes]?.bytes ?? Number.NaN,
        ]),
      );
    for (const bytes of others)
      rows.push(
        ratioRow(
          `big request, Redis CPU with nodes of ${bytes} ÷ ${standard}`,
          big[bytes]?.cpu ?? [],
          plain.cpu,
        ),
      );
    return rows;
  },
};

async function smallOnes(fixture: Fixture, count: number, nodeBytes: number): Promise<Row[]> {
  const { probe } = fixture.server;
  await probe.flushall();
  const queue = fixture.newQueue();
  const pw = fixture.piecework(queue);
  // Memory is measured after the client has connected, loaded its scripts and grown its buffers.
  await pw.submit([fixture.payload(0)]);
  const before = await usedMemory(probe);
  let id = '';
  for (let i = 0; i < count; i += 1) id = (await pw.submit([fixture.payload(i)])).id;
  const waiting = (await usedMemory(probe)) - before;
  const parts = await partsOf(fixture, id);
  const worker = await fixture.startWorker({ queue, concurrency: 100 });
  await pw.request(id).completion();
  await worker.close();
  const complete = (await usedMemory(probe)) - before;
  const after = await partsOf(fixture, id);
  await fixture.clear();
  const label = `nodes of ${nodeBytes}`;
  return [
    medianRow(`waiting, ${label}`, 'bytes', [waiting / count], { note: parts }),
    medianRow(`complete, ${label}`, 'bytes', [complete / count], { note: after }),
  ];
}

/** The keys of one request, each with its bytes. */
async function partsOf({ server }: Fixture, id: string): Promise<string> {
  const parts: string[] = [];
  for (const [name, key] of Object.entries(requestKeys(id))) {
    if (name === 'id' || name === 'channel') continue;
    const bytes = await server.probe.memory('USAGE', key, 'SAMPLES', 0);
    if (bytes) parts.push(`${name} ${bytes}`);
  }
  return `of these ${parts.join(', ')}; the rest is the queue’s`;
}

async function bigOne(fixture: Fixture): Promise<{ cpu: number[]; bytes: number }> {
  const [entrant] = entrantsOf(['piecework'], REPOSITORY) as [Entrant];
  const order = orderOf(fixture.server, entrant, fixture.settings);
  const { probe } = fixture.server;
  const cpu: number[] = [];
  for (let round = 0; round < fixture.settings.rounds; round += 1) {
    await probe.flushall();
    const report = await run('speed', order);
    cpu.push(report.redis.cpuMicros / report.finished);
  }
  await probe.flushall();
  const { waitingBytes } = await run('memory', order);
  return { cpu, bytes: waitingBytes / order.count };
}
