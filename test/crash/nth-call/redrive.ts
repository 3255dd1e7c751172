import { NotCompleteError, PieceworkError } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import type { Admin } from 'piecework';
import { BAD } from '../../cast/roles/handler.js';
import { peek } from '../../support/peek.js';
import { until } from '../../support/until.js';
import type { Stage } from './stage.js';

/*
 * Somebody redrives a complete request, and his n-th call goes wrong. What was moved runs, and the
 * request is complete again, also when nobody asks again; whoever asks then has the rest redriven.
 */

interface Case {
  readonly items: number;
  /** Of so many the first life fails: those of the lowest indexes. */
  readonly failing: number;
  /** Asks for what it wants one by one, with payloads. */
  readonly picky?: boolean;
}

async function redriven(stage: Stage, { items, failing, picky }: Case): Promise<string[]> {
  let good = false;
  const handler = (payload: unknown, context: HandlerContext) =>
    good ? stage.handler('good now', context) : stage.handler(payload, context);
  await (await stage.worker('well', { handler, concurrency: 50 })).start();
  const id = stage.id('request');
  const payloads = Array.from({ length: items }, (_, i) => (i < failing ? BAD : 'good'));
  await (await stage.producer('well')).submit(payloads, { id, limit: 50 });
  await stage.heal(Promise.resolve());
  const picture = () => peek(stage.scene(id));
  const first = await picture();
  if (first.counts.failed !== failing) return [`${first.counts.failed} failed`];
  good = true;

  const complete = () => until(async () => (await picture()).status === 'complete');
  const untilNoneIsLeft = async (admin: Admin): Promise<void> => {
    const where = { where: ({ payload }: { payload: unknown }) => payload === BAD, name: 'Error' };
    while ((await picture()).counts.failed > 0) {
      await admin.redrive(id, picky ? where : {}).catch((error: unknown) => {
        const again = error instanceof NotCompleteError || error instanceof PieceworkError;
        if (!again) throw error;
      });
      await complete();
    }
  };
  const work = stage.takenOver(
    (how) => stage.admin(how),
    async (admin, how) => {
      if (how === 'well') await complete();
      await untilNoneIsLeft(admin);
    },
  );
  await stage.heal(work);
  const wrong = await stage.judge(id, { counts: { succeeded: items } });
  const { generation, outcome } = await picture();
  if (generation <= first.generation) wrong.push('it is the same life');
  if (outcome !== 'succeeded') wrong.push(`it ${outcome}`);
  return wrong;
}

export const redrivers = {
  'redrive of some': (stage: Stage) => redriven(stage, { items: 5, failing: 3, picky: true }),
  'redrive in two pieces': (stage: Stage) => redriven(stage, { items: 103, failing: 101 }),
};
