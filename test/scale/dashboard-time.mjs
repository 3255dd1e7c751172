// How long the server of the dashboard takes to answer a page, each page alone and beside ten others.
//
//   node test/scale/dashboard-time.mjs [--requests 10000] [--workers 200] [--samples 30] [--json]
//
// One process serves, one has the workers, this one has the pages. `answer` is the time from the arrival of a page's
// question to its first view, in the process that serves, with the list of requests read and all else older than a
// round. `cpu` is what that process used meanwhile. `shell` is an answer that reads nothing of Redis, and `timer` how
// late a timer of one millisecond is in the idle process: so much of each answer is the machine. `round` is the CPU time
// of a second in which pages are open, and `redis` that of its server.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';
import pMap from 'p-map';
import { Piecework } from 'piecework';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '10000' },
    workers: { type: 'string', default: '200' },
    samples: { type: 'string', default: '30' },
    json: { type: 'boolean', default: false },
  },
});
const [requests, workers, samples] = [values.requests, values.workers, values.samples].map(Number);
/** How many requests run; the others wait for a task that no worker serves. */
const RUN = 100;
/** Longer than a round: what was read before is old. */
const APART_MS = 1_300;

const program = (name) => fileURLToPath(new URL(`./dashboard-${name}.mjs`, import.meta.url));
const redis = await startRedis({});
const client = new Redis(redis.url);

async function start(name, ...args) {
  const child = fork(program(name), [redis.url, ...args.map(String)]);
  const ended = once(child, 'exit').then(([code]) => {
    if (code !== 0) throw new Error(`${name} has ended with code ${code}`);
  });
  const [ready] = await Promise.race([once(child, 'message'), ended.then(() => [])]);
  return { child, ready };
}

const fleet = await start('workers', workers);
const pw = new Piecework({ redis: redis.url });
await pMap(
  Array.from({ length: requests }, (_, n) => n),
  (n) =>
    pw.submit(n < RUN ? Array(20).fill(n) : [n, n], {
      id: `request-${n}`,
      task: n < RUN ? 'work' : `task-${n % 20}`,
      priority: n % 100,
      metadata: { customer: `customer-${n % 500}` },
    }),
  { concurrency: 64 },
);
await pw.close();

const server = await start('server');
const base = `http://127.0.0.1:${server.ready.port}/`;
const asked = async (question) => {
  server.child.send(question);
  return (await once(server.child, 'message'))[0];
};

/** Opens a view. @returns its first value, and what ends it */
async function open(params) {
  const ending = new AbortController();
  const query = new URLSearchParams({ queue: 'req', ...params });
  const { body } = await fetch(`${base}api/events?${query}`, { signal: ending.signal });
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const next = async () => {
    for (;;) {
      const found = /event: (\w+)\ndata: (.*)\n\n/.exec(text);
      if (found) {
        text = text.slice(found.index + found[0].length);
        if (found[1] !== 'chart') return JSON.parse(found[2]);
        continue;
      }
      const { value, done } = await reader.read();
      if (done) throw new Error('the stream has ended');
      text += value;
    }
  };
  const first = await next();
  const drain = (async () => {
    for (;;) if ((await reader.read()).done) return;
  })().catch(() => {});
  return { first, next, drain, close: () => ending.abort() };
}

async function untilRead() {
  for (;;) {
    const { first, close } = await open({ view: 'overview' });
    close();
    if (first.index.complete) return first;
    await sleep(500);
  }
}

const PAGES = {
  overview: { view: 'overview' },
  'search and sort': { view: 'requests', text: 'customer-7', sort: 'priority' },
  requests: { view: 'requests' },
  'one request': { view: 'request', id: 'request-1' },
  workers: { view: 'workers' },
  errors: { view: 'errors' },
};

const round = (ms) => Math.round(10 * ms) / 10;
const quantile = (numbers, share) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  return round(sorted[Math.floor(share * (sorted.length - 1))]);
};
const spread = (numbers) => ({ median: quantile(numbers, 0.5), p90: quantile(numbers, 0.9) });

async function timesOf(params) {
  const seen = [];
  for (let i = 0; i < samples; i++) {
    await sleep(APART_MS);
    await asked({ measure: 'answer' });
    const { close } = await open(params);
    seen.push(await asked({ measure: 'taken' }));
    close();
  }
  return {
    answer: spread(seen.map(({ ms }) => ms)),
    cpu: spread(seen.map(({ cpuMs }) => cpuMs)),
  };
}

async function redisCpuMs() {
  const info = await client.info('cpu');
  const of = (kind) => Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(info)?.[1]);
  return 1_000 * (of('user') + of('sys'));
}

/** A second with these pages open, as the median of ten. */
async function secondWith(pages) {
  const opened = await Promise.all(pages.map(open));
  await sleep(2_000);
  const [mine, its] = [[], []];
  for (let i = 0; i < 10; i++) {
    const [cpu, server] = [(await asked({ measure: 'cpu' })).cpuMs, await redisCpuMs()];
    const begun = performance.now();
    await sleep(1_000);
    const seconds = (performance.now() - begun) / 1_000;
    mine.push(((await asked({ measure: 'cpu' })).cpuMs - cpu) / seconds);
    its.push(((await redisCpuMs()) - server) / seconds);
  }
  for (const { close } of opened) close();
  return { round: quantile(mine, 0.5), redis: quantile(its, 0.5) };
}

const idle = { timer: spread((await asked({ measure: 'timers' })).lateMs) };
await untilRead();
const shell = [];
for (let i = 0; i < samples; i++) {
  await asked({ measure: 'answer' });
  await (await fetch(`${base}api/shell`)).json();
  shell.push((await asked({ measure: 'taken' })).ms);
}
const alone = {};
for (const [name, params] of Object.entries(PAGES)) alone[name] = await timesOf(params);
const seconds = { 'no page': await secondWith([]) };
for (const [name, params] of Object.entries(PAGES)) seconds[name] = await secondWith([params]);
const ten = [
  ...Object.values(PAGES),
  { view: 'requests', sort: 'rate' },
  { view: 'requests', page: '50' },
  { view: 'request', id: 'request-2' },
  { view: 'request', id: 'request-3' },
];
seconds['ten pages'] = await secondWith(ten);
const beside = {};
const others = await Promise.all(ten.map(open));
// Another search, as an equal question has the same answer.
for (const name of ['overview', 'search and sort'])
  beside[name] = await timesOf({
    ...PAGES[name],
    ...(name === 'overview' ? {} : { text: 'customer-8' }),
  });
for (const { close } of others) close();

const figures = { requests, workers, idle, shell: spread(shell), alone, beside, seconds };
console.log(values.json ? JSON.stringify(figures) : JSON.stringify(figures, undefined, 2));
for (const { child } of [server, fleet]) {
  child.send('end');
  await once(child, 'exit');
}
client.disconnect();
await redis.close();
