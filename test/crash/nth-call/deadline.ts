import { awaitEnd, wrongNotice } from '../../cast/roles/waiter.js';
import { moveClock } from '../../support/clock.js';
import { given, PRODUCER, type Scene } from '../../support/given.js';
import { peek } from '../../support/peek.js';
import { payloads, type Stage } from './stage.js';
import { agendaOf, filled } from './tick.js';

/*
 * Requests with a deadline, and no worker alive: somebody who ticks, or who waits for the end, is all
 * that there is, and the n-th call of that one goes wrong.
 */

const ITEMS = 4;
const DEADLINE_MS = 25_000;
const ROUNDS = 8;
const ROUND_MS = 8_000;

/** One whose producer has sealed it, and one whose producer goes on. */
async function twoRequests(stage: Stage): Promise<[sealed: Scene, open: Scene]> {
  const sealed = await filled(stage, 'sealed', ITEMS, { deadlineMs: DEADLINE_MS });
  await sealed.request.seal(sealed.generation, PRODUCER, payloads(ITEMS).length);
  const open = await given.created({
    ...{ id: stage.id('open'), queue: stage.queue, deadlineMs: DEADLINE_MS },
  });
  return [sealed, open];
}

async function judged(stage: Stage, scene: Scene, cancelled: number): Promise<string[]> {
  const wrong = await stage.judge(scene.id, { counts: { cancelled } });
  const { outcome, fields } = await peek(scene);
  if (outcome !== 'failed' || fields['endReason'] !== 'deadline')
    wrong.push(`${scene.id} ${outcome}, for ${fields['endReason']}`);
  return wrong;
}

async function ticked(stage: Stage): Promise<string[]> {
  const [sealed, open] = await twoRequests(stage);
  let agenda = await agendaOf(stage, 'faulty');
  for (let round = 0; round < ROUNDS; round += 1) {
    moveClock(ROUND_MS);
    await agenda.tick().catch(() => {});
    if (stage.faults.dead) agenda = await agendaOf(stage, 'well');
  }
  await stage.heal(Promise.resolve());
  return [...(await judged(stage, sealed, ITEMS)), ...(await judged(stage, open, 0))];
}

/** Time passes, and others tick; the waiter learns how it ended. */
async function awaited(stage: Stage): Promise<string[]> {
  const [sealed, open] = await twoRequests(stage);
  const waiting = stage.takenOver(
    (how) => stage.notifier(how, how === 'faulty' ? { sweepMs: 200 } : {}),
    (notifier) => Promise.all([sealed, open].map(({ id }) => awaitEnd(notifier, id))),
  );
  await stage.heal(waiting);
  const wrong = [...(await judged(stage, sealed, ITEMS)), ...(await judged(stage, open, 0))];
  for (const notice of await waiting)
    wrong.push(...wrongNotice(notice, await stage.picture(notice.id)));
  return wrong;
}

export const atDeadlines = {
  'tick at a deadline, and no worker': ticked,
  'notifier at a deadline, and no worker': awaited,
};
