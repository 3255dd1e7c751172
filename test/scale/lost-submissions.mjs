// Does every submission that was acknowledged after a failover run, when the replica that took over lacked the
// last writes? Submitters of several kinds go on while the primary is killed and replaced again and again.
//
//   node test/scale/lost-submissions.mjs [--failovers 50] [--submitters 12] [--seed 1] [--json]
//
// Exit code 1 when an acknowledged submission, or redrive, was not complete in the end, without a repair.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { PieceworkError, readFields } from '@piecework/protocol';
import { Worker } from '@piecework/worker';
import { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { Dice } from '../../tools/chaos/dist/contract/dice.js';
import { startStale } from './stale-failover.mjs';

const LEAST_BEHIND_MS = 5;
const MOST_BEHIND_MS = 60;
/** Between two failovers. */
const WORKING_MS = 400;
/** Longer than the agenda lets anything wait that it knows. */
const ENDING_MS = 45_000;
const KINDS = ['small', 'chunks', 'stream', 'open', 'delayed', 'dedupe', 'redrive'];

const ITEMS = [1, 2, 3, 4, 5, 6, 7];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** How each kind is submitted; asked again with the same id it is the same submission. */
function kindsOf(pw, cured) {
  const options = (id) => ({ id, retentionMs: 3_600_000, unavailableMs: 20_000, attempts: 1 });
  async function* streamed() {
    for (const item of ITEMS) {
      if (item % 3 === 0) await sleep(1);
      yield item;
    }
  }
  return {
    small: (id) => pw.submit(ITEMS, options(id)),
    chunks: (id) => pw.submit(ITEMS, { ...options(id), window: 8 }),
    stream: (id) => pw.submit(streamed(), { ...options(id), window: 8 }),
    delayed: (id) => pw.submit(ITEMS, { ...options(id), delayMs: 200 }),
    dedupe: (id) => {
      const { id: _, ...rest } = options(id);
      return pw.submit(ITEMS, { ...rest, dedupe: { key: id, periodMs: 3_600_000 } });
    },
    // One's own id cannot be asked again: who is told of an error begins anew.
    open: async (id) => {
      const request = await pw.open(options(id));
      try {
        await request.append(...ITEMS.slice(0, 3));
        await request.flush();
        await request.append(...ITEMS.slice(3));
        await request.seal();
        return request;
      } finally {
        request.close();
      }
    },
    redrive: async (id) => {
      const handle = await pw.submit(['bad', ...ITEMS.slice(1)], options(id));
      await handle.completion({ timeoutMs: 30_000 });
      cured.add(id);
      // Nothing is left to be redriven when an earlier call did it.
      await handle.redrive();
      return handle;
    },
  };
}

/**
 * @returns what was acknowledged, in how many failovers, and which of it never ran
 */
export async function loseWrites({ failovers, submitters, seed = 1, onFailover = () => {} }) {
  const stale = await startStale();
  const dice = new Dice(seed);
  const queue = `lost-${seed}`;
  const pw = new Piecework({ redis: stale.url, queue });
  const cured = new Set();
  const worker = new Worker({
    ...{ redis: stale.url, queue, concurrency: 50, leaseMs: 5_000 },
    handler: (payload, { requestId }) => {
      if (payload === 'bad' && !cured.has(requestId)) throw new Error('bad');
    },
  });
  const acknowledged = [];
  const refused = new Map();
  /** When the server may not have kept what it acknowledged. */
  const unsafe = [];
  let stopping = false;

  const submitOne = async (kind, submit, id) => {
    const again = kind === 'open' ? 1 : 20;
    for (let i = 0; i < again && !stopping; i += 1) {
      try {
        const told = await submit(id);
        acknowledged.push({ kind, id: told.id, at: performance.now() });
        return;
      } catch (error) {
        if (!(error instanceof PieceworkError)) throw error;
        const what = `${kind} ${error.code}`;
        refused.set(what, (refused.get(what) ?? 0) + 1);
        if (!error.retryable) return;
      }
    }
  };
  const submitter = async (number) => {
    const kinds = kindsOf(pw, cured);
    for (let i = 0; !stopping; i += 1) {
      const kind = KINDS[Math.floor(dice.next() * KINDS.length)];
      await submitOne(kind, kinds[kind], `${queue}-${number}-${i}`);
    }
  };

  try {
    await worker.start();
    const submitting = Array.from({ length: submitters }, (_, n) => submitter(n));
    const all = Promise.all(submitting);
    all.catch(() => {});
    for (let i = 0; i < failovers; i += 1) {
      const behindMs =
        LEAST_BEHIND_MS + Math.round(dice.next() * (MOST_BEHIND_MS - LEAST_BEHIND_MS));
      await sleep(WORKING_MS);
      const { hasUntil, tookOver } = await stale.failOver(behindMs);
      unsafe.push([hasUntil, tookOver]);
      onFailover(i + 1, behindMs, acknowledged.length);
    }
    await sleep(WORKING_MS);
    stopping = true;
    await all;
    const counted = acknowledged.filter(
      ({ at }) => !unsafe.some(([from, to]) => at >= from && at <= to),
    );
    const lost = await notComplete(stale.url, counted);
    const after = unsafe[0]?.[1] ?? 0;
    return {
      failovers,
      acknowledged: acknowledged.length,
      after: counted.filter(({ at }) => at > after).length,
      byKind: Object.fromEntries(
        KINDS.map((kind) => [kind, counted.filter((one) => one.kind === kind).length]),
      ),
      refused: Object.fromEntries(refused),
      lost,
    };
  } finally {
    stopping = true;
    await worker.close({ timeoutMs: 0 }).catch(() => {});
    await pw.close().catch(() => {});
    await stale.close();
  }
}

/** Those that are not complete, with all their items, when nothing moves any more. */
async function notComplete(url, requests) {
  const redis = new Redis(url);
  try {
    let left = requests;
    const end = performance.now() + ENDING_MS;
    for (;;) {
      const states = await Promise.all(
        left.map(async ({ id }) => {
          const keys = { request: `request:{${id}}` };
          return Object.values(await readFields(redis, keys, ['outcome', 'total', 'status']));
        }),
      );
      left = left
        .map((one, i) => ({ ...one, state: states[i].join() }))
        .filter(({ state }) => state !== `succeeded,${ITEMS.length},complete`);
      if (left.length === 0 || performance.now() > end) return left;
      await sleep(500);
    }
  } finally {
    redis.disconnect();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      failovers: { type: 'string', default: '50' },
      submitters: { type: 'string', default: '12' },
      seed: { type: 'string', default: '1' },
      json: { type: 'boolean', default: false },
    },
  });
  const found = await loseWrites({
    failovers: Number(values.failovers),
    submitters: Number(values.submitters),
    seed: Number(values.seed),
    onFailover: (n, behindMs, acknowledged) => {
      if (!values.json)
        console.error(`failover ${n}, ${behindMs} ms behind; ${acknowledged} acknowledged`);
    },
  });
  const { failovers, after, lost, byKind, refused } = found;
  if (values.json) console.log(JSON.stringify(found));
  else {
    console.log(`${failovers} failovers; acknowledged after the first: ${after}`);
    console.log(`by kind: ${JSON.stringify(byKind)}; refused: ${JSON.stringify(refused)}`);
    console.log(`never ran: ${lost.length}`);
    for (const one of lost.slice(0, 20)) console.log(`  ${one.kind} ${one.id}: ${one.state}`);
  }
  process.exitCode = lost.length === 0 ? 0 : 1;
}
