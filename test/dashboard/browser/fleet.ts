import { serveDashboard } from '@piecework/dashboard';
import { startRedis } from '@piecework/embedded';
import { IdQueue, Piecework, RetryQueue, Scheduler, Worker } from 'piecework';
import { type Browser, chromium } from 'playwright-core';

/*
 * A small living fleet with the dashboard before it, for tests and screenshots in a real browser.
 */

/** What attackers and users of the world write into ids, names, metadata and errors. */
export const HOSTILE = [
  '<img src=x onerror="window.pwned=1">',
  '"><script>window.pwned=1</script>',
  "javascript:window.pwned=1//'",
  '</pre></bdi><svg onload=window.pwned=1>',
  '{{constructor.constructor("window.pwned=1")()}}',
  '\u202Eevil\u202C \u2066hidden\u2069 \u200Bzero',
  'مرحبا بالعالم — שלום',
  '👩‍👩‍👧‍👦 🏴‍☠️ Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L',
  'x'.repeat(3_000),
];

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
export const items = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));

const TASKS: Record<string, number> = {
  'resize-image': 90,
  'embed-text': 400,
  'fetch-page': 150,
  'send-mail': 60,
};

interface Payload {
  readonly n: number;
  readonly stuck?: boolean;
  readonly hostile?: string;
  /** Whether the class of the error is hostile as well. */
  readonly named?: boolean;
}

async function handle(task: string, payload: Payload, context: { progress(n: number): void }) {
  const { n, stuck, hostile, named } = payload;
  if (hostile !== undefined)
    throw Object.assign(new Error(hostile), {
      name: named ? hostile.slice(0, 100) : 'HostileError',
      stack: `${hostile}\n`.repeat(20_000).slice(0, 1_000_000),
    });
  if (stuck) await sleep(3_600_000);
  if (task === 'fetch-page' && n % 9 === 0)
    throw new TypeError(`fetch failed: connect ECONNREFUSED 203.0.113.7:443 of page ${n}`);
  if (task === 'fetch-page' && n % 23 === 0)
    throw Object.assign(new Error('the server answered 503'), { name: 'HttpError' });
  context.progress(n % 100);
  await sleep((TASKS[task] ?? 50) * (0.5 + Math.random()));
  return { bytes: n * 17 };
}

const silent = (() => {
  const log: Record<string, unknown> = {};
  for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal']) log[level] = () => {};
  log['child'] = () => log;
  return log as never;
})();

export interface Fleet extends AsyncDisposable {
  readonly url: string;
  readonly pw: Piecework;
  readonly redis: string;
}

export async function startFleet(): Promise<Fleet> {
  const server = await startRedis();
  const redis = server.url;
  const workers = await Promise.all(
    [8, 12, 20, 5, 40, 10].map((concurrency) =>
      new Worker({
        ...{ redis, concurrency, maxBlockMs: 0, logger: silent },
        handlers: Object.keys(TASKS).map((task) => ({
          task,
          run: (payload: Payload, context) => handle(task, payload, context),
        })),
      }).start(),
    ),
  );
  const pw = new Piecework({ redis });
  const retry = new RetryQueue({ redis, name: 'webhooks' });
  const scheduler = new Scheduler({ redis, name: 'reports' });
  const ids = await IdQueue.join('pictures', { redis });
  const served = await serveDashboard({
    ...{ redis, port: 0, insecure: true, allowControl: true, showPayloads: true },
    queues: [{ name: 'req' }, { name: 'mail' }],
    beside: { retryQueues: ['webhooks'], schedulers: ['reports'], idQueues: ['pictures'] },
  });
  await fill(pw, retry, scheduler);
  await fillIds(ids);
  return {
    ...{ url: served.url, pw, redis },
    async [Symbol.asyncDispose]() {
      await served.close();
      await Promise.all([retry.close(), scheduler.close(), ids.close(), pw.close()]);
      await Promise.all(workers.map((worker) => worker.close({ timeoutMs: 0 })));
      await server.close();
    },
  };
}

async function fill(pw: Piecework, retry: RetryQueue, scheduler: Scheduler): Promise<void> {
  const submit = (id: string, task: string, payloads: readonly unknown[], more: object = {}) =>
    pw.submit(payloads, { id, task, ...more });
  const stuck = items(200).map(({ n }) => ({ n, stuck: n === 7 }));
  await submit('mail-2026-11-20', 'send-mail', stuck, { priority: 20 });
  await submit('thumbnails-november', 'resize-image', items(60_000), {
    ...{ limit: 30, metadata: { customer: 'acme', album: 'november' } },
  });
  await submit('embed-wiki-en-shard-07', 'embed-text', items(9_000), {
    metadata: { corpus: 'wiki-en', shard: 7 },
  });
  await submit('crawl-2026-11-23', 'fetch-page', items(20_000), {
    ...{ limit: 12, toleratedFailures: '100%', attempts: 2, backoff: 500 },
    metadata: { startedBy: 'ann' },
  });
  await submit('crawl-2026-11-22', 'fetch-page', items(300), { priority: 10 });
  await submit('invoices-q3', 'render-pdf', items(40), { metadata: { quarter: 3 } });
  await submit('mail-newsletter', 'send-mail', items(500), { priority: 80, delayMs: 900_000 });
  await (await submit('reindex-products', 'embed-text', items(1_000), { priority: 75 })).pause();
  for (let n = 0; n < 60; n++)
    await submit(`order-${1_000 + n}`, 'send-mail', items(20 + n), {
      ...{ priority: 30, metadata: { order: 1_000 + n } },
    });
  for (let n = 0; n < 25; n++)
    await retry.put({ to: n }, { key: `hook-${n}`, delayMs: n < 4 ? 0 : 60_000 * n });
  let taken = 0;
  for await (const item of retry.items()) {
    await item.discard(new Error('410 Gone'));
    taken += 1;
    if (taken === 3) break;
  }
  for (let n = 0; n < 12; n++)
    await scheduler.enqueue({ report: n }, Date.now() + 3_600_000 * (n + 1));
}

async function fillIds(ids: IdQueue): Promise<void> {
  await ids.add(items(400).map(({ n }) => `picture-${n}`));
  for (const outcome of ['done', 'no such file', 'done', 'the file is empty', 'held', 'held']) {
    const pulled = await ids.pull();
    if (pulled.state !== 'ready' || outcome === 'held') continue;
    if (outcome === 'done') await ids.done(pulled.key);
    else await ids.fail(pulled.key, outcome);
  }
}

/** Chromium, if it is installed. PIECEWORK_CHROMIUM names another program. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = process.env['PIECEWORK_CHROMIUM'] ?? '/usr/bin/chromium';
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}
