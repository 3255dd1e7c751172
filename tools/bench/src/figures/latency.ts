import { Queue, QueueEvents } from 'bullmq';
import type { Figure, Row } from '../figure/figure.js';
import { blockMedians, percentileRows, ratioRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';

const WARM_UP = 100;

type Once = () => Promise<unknown>;

/** How long one small thing takes when nothing else is going on. */
export const latency: Figure = {
  title: 'Latency of a request with one sub-request, idle',
  definition:
    'From the call that submits until the completion is known to the caller. BullMQ: `add` to `waitUntilFinished`.',
  method:
    'The caller is one process, the worker another, for both alike; both pairs are up all the time, and the two take turns, sample by sample, with a PING between. Warmed up before. Defaults, 10 slots, a handler that returns at once.',
  target: 'p50 ≤ 0.6 × BullMQ; p99 reported',

  async measure(fixture): Promise<Row[]> {
    const samples = fixture.of(1_000, 300, 10);
    const own: number[] = [];
    const bull: number[] = [];
    const pings: number[] = [];
    await using peer = await bullmq(fixture);
    const piecework = await ownOnce(fixture);
    for (let i = -Math.min(WARM_UP, samples); i < samples; i += 1) {
      const ownMs = await timed(piecework);
      const bullMs = await timed(peer.once);
      const pingMs = await timed(() => fixture.server.probe.ping());
      if (i < 0) continue;
      own.push(ownMs);
      bull.push(bullMs);
      pings.push(pingMs);
    }
    const blocks = fixture.settings.rounds;
    const ratio = ratioRow(
      'Piecework ÷ BullMQ, p50',
      blockMedians(own, blocks),
      blockMedians(bull, blocks),
      { atMost: 0.6 },
    );
    return [
      ...percentileRows('Piecework', 'ms', own),
      ...percentileRows('BullMQ', 'ms', bull),
      ...percentileRows('PING', 'ms', pings),
      ratio,
    ];
  },
};

async function ownOnce(fixture: Fixture): Promise<Once> {
  const queue = fixture.newQueue();
  await fixture.startWorker({ queue, concurrency: 10 });
  const pw = fixture.piecework(queue);
  return async () => {
    const request = await pw.submit([fixture.payload(0)]);
    (await request.completion()).throwIfFailed();
  };
}

async function bullmq(fixture: Fixture): Promise<AsyncDisposable & { once: Once }> {
  const name = fixture.newQueue();
  const { host, port } = fixture.server;
  const connection = { host, port, maxRetriesPerRequest: null };
  await fixture.startWorker({ kind: 'bullmq', queue: name, concurrency: 10 });
  const queue = new Queue(name, { connection });
  const events = new QueueEvents(name, { connection });
  await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
  return {
    once: async () => {
      const job = await queue.add('job', fixture.payload(0));
      await job.waitUntilFinished(events);
    },
    [Symbol.asyncDispose]: async () => {
      await events.close();
      await queue.close();
    },
  };
}

async function timed(once: Once): Promise<number> {
  const startMs = performance.now();
  await once();
  return performance.now() - startMs;
}
