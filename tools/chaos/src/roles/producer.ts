import { setTimeout as sleep } from 'node:timers/promises';
import {
  DroppedError,
  NotFoundError,
  PieceworkError,
  RequestExistsError,
  SealedError,
} from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Piecework, type RequestOptions } from 'piecework';
import { type Payload, type Plan, pauseMs, payloadOf } from '../contract/plan.js';
import { control } from './control.js';
import { enterRole, insist, nowNs, onStop, serve } from './role.js';

/*
 * A producer: submits the requests that the desk asks for, and drops them in the end. It may be killed at any point;
 * its successor is asked for the same requests and finishes them.
 */

const role = enterRole();
const { argument, journal, report } = role;
const { redis, queue, shards, seed, shortLeases } = argument;
/** Longer than it takes to start the successor of a killed producer. */
const PRODUCER_LEASE_MS = shortLeases ? 20_000 : 60_000;
/** Workers are killed whatever they run, so no sub-request may fail for its crashes. */
const MAX_CRASHES = 1_000;

const pw = new Piecework({ redis, queue, shards });
/** When the call was sent that showed each request as sealed. */
const sealedNs = new Map<string, string>();

function optionsOf({ id, limit, priority, window, ...plan }: Plan): RequestOptions {
  const { attempts, backoffMs: delayMs, deadlineMs } = plan;
  return {
    ...{ id, limit, priority, window, attempts },
    backoff: { type: 'exponential', delayMs, maxDelayMs: 2_000, jitter: 0.5 },
    ...{ producerLeaseMs: PRODUCER_LEASE_MS, maxCrashes: MAX_CRASHES },
    ...(deadlineMs > 0 ? { deadlineMs } : {}),
  };
}

function noteFailure(failed: 'open' | 'append' | 'seal' | 'drop', { id }: Plan, error: unknown) {
  const code = error instanceof PieceworkError ? error.code : 'OTHER';
  journal.write({ failed, request: id, code, message: String(error) });
}

/** An array is recognised by its content, whichever process submits it: a repeated submission adds nothing twice. */
async function submitAtOnce(plan: Plan): Promise<void> {
  const { id: request, size, limit } = plan;
  const ends = plan.deadlineMs > 0 ? { deadlineMs: plan.deadlineMs } : {};
  const items = Array.from({ length: size }, (_, n): Payload => payloadOf(seed, plan, n));
  await insist(
    async () => {
      journal.write({ does: 'open', request, limit, leaseMs: PRODUCER_LEASE_MS, ...ends });
      if (size > 0) journal.write({ does: 'append', request, from: 0, to: size });
      journal.write({ does: 'seal', request, total: size });
      await pw.submit(items, optionsOf(plan));
    },
    (error) => noteFailure('seal', plan, error),
  );
  let sinceNs = nowNs();
  const { generation } = await insist(
    () => {
      sinceNs = nowNs();
      return pw.request(request).status();
    },
    (error) => noteFailure('seal', plan, error),
  );
  sealedNs.set(request, sinceNs);
  journal.write({ did: 'append', request, from: 0, to: size, sinceNs });
  journal.write({ did: 'seal', request, generation, total: size, sinceNs });
}

/**
 * Submits piece by piece. Each attempt, in this process or in another, first asks Redis how many items are in. No call
 * of an earlier attempt may still be under way then. So each attempt has a connection of its own, which is discarded
 * when it fails, with everything that the client library would send again.
 */
async function submitInPieces(plan: Plan): Promise<void> {
  await insist(
    async () => {
      const client = new Redis(redis, { protocol: 2, lazyConnect: true, socketTimeout: 20_000 });
      client.on('error', () => {});
      const own = new Piecework({ redis: client, queue, shards });
      try {
        await fill(own, plan);
      } finally {
        client.disconnect();
        await own.close();
      }
    },
    () => {},
  );
}

async function fill(own: Piecework, plan: Plan): Promise<void> {
  const { id: request, size, limit, piece } = plan;
  let step: 'open' | 'append' | 'seal' = 'open';
  try {
    journal.write({ does: 'open', request, limit, leaseMs: PRODUCER_LEASE_MS });
    const open = await own.open(optionsOf(plan)).catch((error: unknown) => {
      if (error instanceof RequestExistsError) return undefined;
      throw error;
    });
    const statusNs = nowNs();
    const { generation, counts, status } = await own.request(request).status();
    let from = counts.total;
    // Items that are in may be those of a predecessor that was killed before it wrote them down.
    if (from > 0) journal.write({ did: 'append', request, from: 0, to: from, sinceNs: statusNs });
    if (!open) {
      if (status === 'open') throw new Error(`${request} is ${status} at ${from}`);
      if (from !== size) throw new SealedError(request, status);
      sealedNs.set(request, statusNs);
      journal.write({ did: 'seal', request, generation, total: size, sinceNs: statusNs });
      return;
    }
    report({ report: 'opened', id: request });
    step = 'append';
    while (from < size) {
      const to = Math.min(size, from + piece);
      const items = Array.from({ length: to - from }, (_, n) => payloadOf(seed, plan, from + n));
      const appendNs = nowNs();
      journal.write({ does: 'append', request, from, to });
      await open.append(...items);
      await open.flush();
      journal.write({ did: 'append', request, from, to, sinceNs: appendNs });
      // Outages outlast leases only where these are short.
      if (shortLeases) await sleep(pauseMs(plan, to - from));
      from = to;
    }
    step = 'seal';
    const sinceNs = nowNs();
    journal.write({ does: 'seal', request, total: size });
    await open.seal();
    sealedNs.set(request, sinceNs);
    journal.write({ did: 'seal', request, generation, total: size, sinceNs });
  } catch (error) {
    noteFailure(step, plan, error);
    throw error;
  }
}

async function produce(plan: Plan): Promise<void> {
  // A cluster client that is discarded may leave calls under way.
  const atOnce = plan.manner === 'at once' || redis.includes(',');
  await (atOnce ? submitAtOnce(plan) : submitInPieces(plan)).catch(async (error: unknown) => {
    // Its deadline passed, or it was given up, before all items were in. The judge says whether that was right.
    const ended = error instanceof SealedError || error instanceof RequestExistsError;
    // If it is still open, a part of it may have been lost: the desk asks again.
    if (!ended || (await pw.request(plan.id).status()).status === 'open') throw error;
  });
  report({ report: 'sealed', id: plan.id, sinceNs: sealedNs.get(plan.id) ?? nowNs() });
  sealedNs.delete(plan.id);
}

async function drop(plan: Plan): Promise<void> {
  const { id: request } = plan;
  let sinceNs = nowNs();
  await insist(
    async () => {
      sinceNs = nowNs();
      journal.write({ does: 'drop', request });
      await pw
        .request(request)
        .drop()
        .catch((error: unknown) => {
          if (!(error instanceof NotFoundError) && !(error instanceof DroppedError)) throw error;
        });
    },
    (error) => noteFailure('drop', plan, error),
  );
  journal.write({ did: 'drop', request });
  report({ report: 'dropped', id: request, sinceNs });
}

/** The last task of each request. */
const last = new Map<string, Promise<void>>();

onStop(() => pw.close());
serve(async (asked) => {
  if (asked.task === 'put no more') return;
  const { task, plan } = asked;
  // Beside what is under way: pieces may still be added.
  if (task === 'control') return control(role, pw, plan, asked.step);
  // A predecessor's word that it is sealed may come when this one was asked for it already; asked once
  // more behind the drop, it would be another request.
  const before = last.get(plan.id);
  const done = (async () => {
    await before;
    try {
      await (task === 'produce' ? produce(plan) : drop(plan));
    } catch (error) {
      report({ report: 'gave up', id: plan.id, code: String(error) });
    }
  })();
  last.set(plan.id, done);
  await done;
  if (last.get(plan.id) === done) last.delete(plan.id);
});
report({ report: 'ready' });
