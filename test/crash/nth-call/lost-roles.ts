import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestOptions } from '@piecework/producer';
import { RequestExistsError } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { Admin } from 'piecework';
import { BAD } from '../../cast/roles/handler.js';
import { gate } from '../../support/flow.js';
import { until } from '../../support/until.js';
import type { LostAfter } from './lost-after.js';

/*
 * Who loses what it was told. What it was told since is there to stay; all else may be asked for again.
 */

export type LostRole = (stage: LostAfter) => Promise<string[]>;

const ITEMS = 7;

/** What is acknowledged runs, with nobody asking for it again. */
function submission(options: RequestOptions): LostRole {
  return async (stage) => {
    await stage.start('well');
    const id = stage.id('request');
    const producer = stage.producer('forgotten');
    const payloads = Array.from({ length: ITEMS }, (_, i) => `item ${i}`);
    const submit = async () => {
      const asked = () => producer.submit(payloads, { ...options, id, limit: 2 });
      for (let told = false; !told; ) {
        told = await asked().then(
          () => true,
          (error: { retryable?: boolean }) => {
            if (error instanceof RequestExistsError) return true;
            if (!error.retryable) throw error;
            return false;
          },
        );
      }
    };
    await stage.heal(submit());
    return stage.judge(id, ITEMS);
  };
}

/**
 * A worker enters, settles, takes what failed, renews, and gives back what it is closed over. Another one works
 * beside it, which reads what the server forgot to have handed out.
 */
async function worker(stage: LostAfter): Promise<string[]> {
  const [began, hangs] = [gate(), gate()];
  let runs = 0;
  const handler = async (payload: unknown, context: HandlerContext) => {
    const { signal, progress } = context;
    runs += 1;
    began.open();
    const run = runs;
    await stage.handler(payload, context);
    if (run === 2) throw new Error('again');
    if (run === 3) {
      progress(1);
      const before = stage.callsOf('renew');
      await until(() => signal.aborted || stage.callsOf('renew') > before);
    }
    if (run === 6) {
      hangs.open();
      await until(() => signal.aborted, { timeoutMs: 60_000 });
    }
    await sleep(15);
    return payload;
  };
  const quickly = async (payload: unknown, context: HandlerContext) => {
    await sleep(3);
    return stage.handler(payload, context);
  };
  const ids = ['a', 'b'].map((name) => stage.id(name));
  const payloads = Array.from({ length: ITEMS }, (_, i) => `item ${i}`);
  const producer = stage.producer('well');
  for (const id of ids) await producer.submit(payloads, { id, limit: 4, attempts: 2, backoff: 0 });
  await producer.close();

  const options = { quantumMs: 0, leaseMs: 1_000 };
  const work = async () => {
    const one = await stage.start('forgotten', { ...options, handler });
    await began.opened;
    await stage.start('well', { ...options, handler: quickly });
    await Promise.race([hangs.opened, stage.over()]);
    await one.close({ timeoutMs: 0 });
  };
  await stage.heal(work());
  return (await Promise.all(ids.map((id) => stage.judge(id, ITEMS)))).flat();
}

/** Asked again as long as anything is failed; each sub-request is in the end what its last run made of it. */
async function redrive(stage: LostAfter): Promise<string[]> {
  await stage.start('well', { concurrency: 5 });
  const id = stage.id('request');
  const payloads = Array.from({ length: ITEMS }, (_, i) => (i < 4 ? BAD : 'good'));
  await stage.producer('well').submit(payloads, { id, limit: 5 });
  await stage.heal(Promise.resolve());
  const wrong = await stage.judge(id, 3, 4);
  if (wrong.length > 0) return wrong;
  stage.good = true;
  const admin = stage.keep(new Admin({ redis: stage.actor.client, queue: stage.queue }));
  const asked = async () => {
    for (;;) {
      await until(async () => (await stage.picture(id)).status === 'complete', {
        timeoutMs: 60_000,
      });
      if ((await stage.picture(id)).counts.failed === 0) return;
      await admin.redrive(id).catch((error: { retryable?: boolean; code?: string }) => {
        if (!error.retryable && error.code !== 'NOT_COMPLETE') throw error;
      });
    }
  };
  await stage.heal(asked());
  return stage.judge(id, ITEMS);
}

export const lostRoles: Readonly<Record<string, LostRole>> = {
  'a submission in one call': submission({}),
  'a submission in chunks': submission({ window: 8 }),
  'a worker': worker,
  'a redrive': redrive,
};
