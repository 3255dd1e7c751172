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
import { type Payload, type Plan, pauseMs, payloadOf } from '../plan.js';
import { control } from './control.js';
import { enterRole, insist, nowNs, onStop, serve } from './role.js';

/*
 * A producer: submits what it is asked to, and drops it in the end. It may be killed anywhere; its
 * successor is asked for the same requests and finishes them.
 */

const role = enterRole();
const { argument, journal, report } = role;
const { redis, queue, shards, seed, shortLeases } = argument;
/** A successor has to be there before a producer counts as lost. */
const PRODUCER_LEASE_MS = shortLeases ? 20_000 : 60_000;
/** Every worker is killed whatever it runs: no sub-request is to blame for it. */
const MAX_CRASHES = 1_000;

const pw = new Piecework({ redis, queue, shards });
/** Since when each request is known to be sealed. */
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

/** An array is recognised by its content, whoever submits it: asking again adds nothing twice. */
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
 * Piece by piece. Whoever goes on, in this process or in another, asks Redis how far it is. For that
 * no call of an earlier try may be under way any more: each try has a connection of its own, which
 * is thrown away, with what the client library would send again, when the try fails.
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
    // What is in may be the work of a predecessor that did not live to write it down.
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
  // A client of a cluster, thrown away, may leave calls under way.
  const atOnce = plan.manner === 'at once' || redis.includes(',');
  await (atOnce ? submitAtOnce(plan) : submitInPieces(plan)).catch(async (error: unknown) => {
    // Its time was over, or it was given up, before it was complete. Whether it may have been, others judge.
    const ended = error instanceof SealedError || error instanceof RequestExistsError;
    // While it is open, a part of it may have been lost: whoever asked asks again.
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
