import type { RequestOptions } from '@piecework/producer';
import { UnrecoverableError } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { noted } from '../../cast/roles/handler.js';
import { peek } from '../../support/peek.js';
import { until } from '../../support/until.js';
import { Gates } from './gates.js';
import { type Expected, payloads, type Stage } from './stage.js';

/*
 * A worker whose n-th call goes wrong, of a request that has terms: attempts, backoff, holds,
 * checkpoints, a time for each attempt, failures that end it, a cancel. When its process ended,
 * another one takes over.
 */

async function submitted(stage: Stage, n: number, options: RequestOptions): Promise<string> {
  const id = stage.id('request');
  await (await stage.producer('well')).submit(payloads(n), { ...options, id });
  return id;
}

/** How it ended, and how often the handlers of what failed had run. */
async function judged(
  stage: Stage,
  id: string,
  expected: Expected & { outcome: string; endReason?: string },
  attempts: Readonly<Record<number, number>> = {},
): Promise<string[]> {
  const wrong = await stage.judge(id, expected);
  const { outcome, fields, results } = await peek(stage.scene(id));
  if (outcome !== expected.outcome) wrong.push(`it ${outcome}`);
  if (fields['endReason'] !== expected.endReason) wrong.push(`reason ${fields['endReason']}`);
  for (const [index, times] of Object.entries(attempts)) {
    const found = results.find((one) => one.index === Number(index));
    if (found?.value !== String(times)) wrong.push(`${index} failed after ${found?.value}`);
  }
  return wrong;
}

const CHECKPOINT = { row: 7 };

/** One handler for each of the terms; the first attempt of most goes wrong. */
async function everyTerm(stage: Stage): Promise<string[]> {
  const wrong: string[] = [];
  let held = false;
  const handlers: ((context: HandlerContext) => Promise<void>)[] = [
    async ({ attempt, checkpoint, checkpointed }) => {
      if (attempt > 1) {
        const kept = JSON.stringify(checkpointed);
        if (kept !== JSON.stringify(CHECKPOINT)) wrong.push(`attempt ${attempt} found ${kept}`);
        return;
      }
      checkpoint(CHECKPOINT);
      throw new Error('at first');
    },
    async () => {
      throw new UnrecoverableError('never');
    },
    async ({ holdRequest }) => {
      if (held) return;
      held = true;
      throw holdRequest(5_000);
    },
    async ({ attempt, signal }) => {
      if (attempt > 1) return;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      throw signal.reason;
    },
    async () => {},
    async ({ retryAfter }) => {
      retryAfter(3_000);
      throw new Error('always');
    },
  ];
  const isFinal = (error: unknown) => error instanceof UnrecoverableError;
  const handler = async (_: unknown, context: HandlerContext) =>
    noted(stage.runs, context, async () => handlers[context.index]?.(context), isFinal);
  const id = await submitted(stage, handlers.length, {
    limit: 2,
    attempts: 3,
    backoff: { type: 'exponential', delayMs: 2_000, maxDelayMs: 8_000, jitter: 0.5 },
    attemptTimeoutMs: 40,
  });
  await stage.replaced((how) => stage.worker(how, { handler }));
  await stage.heal(Promise.resolve());
  const expected = { counts: { succeeded: 4, failed: 2 }, outcome: 'failed' };
  return [...wrong, ...(await judged(stage, id, expected, { 1: 1, 5: 3 }))];
}

/** The second failure is one too many: the rest is cancelled. */
async function tooManyFailures(stage: Stage): Promise<string[]> {
  const handler = async (_: unknown, context: HandlerContext) => stage.handler('bad', context);
  const terms: RequestOptions = { limit: 1, toleratedFailures: 1, onExceeded: 'cancel' };
  const id = await submitted(stage, 6, terms);
  await stage.replaced((how) => stage.worker(how, { handler }));
  await stage.heal(Promise.resolve());
  const expected = { counts: { failed: 2, cancelled: 4 }, outcome: 'failed' };
  return judged(stage, id, { ...expected, endReason: 'failures' });
}

/** Somebody cancels while both slots are taken; it hears it by message, by renewal, or not at all. */
async function cancelled(stage: Stage): Promise<string[]> {
  const gates = new Gates(stage);
  // Time that passes before it is cancelled ends leases: those are no crashes of what ran.
  const id = await submitted(stage, 6, { limit: 2, maxCrashes: 100 });
  const { handler } = gates;
  await stage.replaced((how) => stage.worker(how, { handler, leaseMs: 3_000 }));
  const cancel = async () => {
    await until(() => gates.running.length > 0);
    await (await stage.admin('well')).cancel(id);
  };
  try {
    await stage.heal(cancel());
  } finally {
    gates.openAll();
  }
  const expected = { counts: { cancelled: 6 }, outcome: 'cancelled', endReason: 'cancel' };
  return judged(stage, id, expected);
}

export const workersOfAttempts = { 'worker of all kinds of attempts': everyTerm };

export const workersUnderTerms = {
  'worker of a request that fails too often': tooManyFailures,
  'worker of a request that is cancelled': cancelled,
};
