// What an idle process costs: commands and bytes per second, by kind of process and by its setting `idle`, each on a server
// of its own. A frugal one ticks every 50 s, so the time should be several minutes.
//
//   npm run build && node test/scale/idle-cost.mjs [SECONDS]
import { once } from 'node:events';
import { serveDashboard } from '@piecework/dashboard';
import { startRedis } from '@piecework/embedded';
import { Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import { IdQueue, RetryQueue, Scheduler } from '@piecework/queues';
import { Worker } from '@piecework/worker';
import { Redis } from 'ioredis';

const seconds = Number(process.argv[2] ?? 300);

/** Each opens an idle object, with a setting if it has any, and answers how to close it. */
const kinds = {
  'a worker': async (redis, idle) => {
    const worker = new Worker({ redis, idle, handler: () => {} });
    await worker.start();
    return () => worker.close();
  },
  'a worker that had work': async (redis, idle) => {
    const worker = new Worker({ redis, idle, handler: () => {} });
    await worker.start();
    const producer = new Producer({ redis });
    await producer.submit([1]);
    await once(worker, 'drained');
    await producer.close();
    return () => worker.close();
  },
  'a worker of named tasks': async (redis, idle) => {
    const handlers = [{ task: 'a', run: () => {} }];
    const worker = new Worker({ redis, idle, handlers });
    await worker.start();
    return () => worker.close();
  },
  'a producer with nothing open': async (redis) => {
    const producer = new Producer({ redis });
    await (await producer.open({ id: 'a' })).cancel();
    return () => producer.close();
  },
  'a notifier that awaits one request': async (redis, idle) => {
    const producer = new Producer({ redis });
    const { id } = await producer.submit([1]);
    await producer.close();
    const notifier = new Notifier({ redis, idle });
    notifier.completion(id).catch(() => {});
    return () => notifier.close();
  },
  'a Scheduler that waits': async (redis, idle) => {
    const queue = new Scheduler({ redis, idle, name: 'a' });
    const over = new AbortController();
    (async () => {
      for (;;) await queue.takeDue({ lockMs: 10_000, waitMs: 600_000, signal: over.signal });
    })().catch(() => {});
    return () => {
      over.abort();
      return queue.close();
    };
  },
  'a RetryQueue that waits': async (redis, idle) => {
    const queue = new RetryQueue({ redis, idle, name: 'a' });
    const over = new AbortController();
    queue.consume(async () => {}, { maxFailures: 1, signal: over.signal }).catch(() => {});
    return () => {
      over.abort();
      return queue.close();
    };
  },
  'an IdQueue that nobody pulls from': async (redis) => {
    const queue = await IdQueue.join('a', { redis });
    return () => queue.close();
  },
  'a dashboard that nobody looks at': async (redis) => {
    const dashboard = await serveDashboard({ redis, port: 0, insecure: true });
    return () => dashboard.close();
  },
};

async function figures(url) {
  const client = new Redis(url);
  const info = await client.info('stats');
  client.disconnect();
  const of = (name) => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
  return {
    commands: of('total_commands_processed'),
    bytes: of('total_net_input_bytes') + of('total_net_output_bytes'),
  };
}

const settings = Object.entries(kinds).flatMap(([kind, open]) =>
  (open.length > 1 ? ['responsive', 'frugal'] : [undefined]).map((idle) => ({ kind, open, idle })),
);
const rows = await Promise.all(
  settings.map(async ({ kind, open, idle }) => {
    const server = await startRedis();
    const close = await open(server.url, idle);
    // What follows a start is not idle yet: a frugal worker rests 5 s after its work.
    await new Promise((resolve) => setTimeout(resolve, 12_000));
    const before = await figures(server.url);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
    const after = await figures(server.url);
    const client = new Redis(server.url);
    const stats = (await client.info('commandstats')).match(/cmdstat_[^:]+:calls=\d+/g) ?? [];
    client.disconnect();
    await close();
    await server.close();
    return {
      kind,
      idle,
      'commands/min': (((after.commands - before.commands) * 60) / seconds).toFixed(0),
      'bytes/s': ((after.bytes - before.bytes) / seconds).toFixed(0),
      stats: process.env.STATS
        ? stats.map((s) => s.replace('cmdstat_', '').replace('calls=', '')).join(' ')
        : undefined,
    };
  }),
);
console.table(rows);
