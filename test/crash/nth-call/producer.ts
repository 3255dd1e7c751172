import type { Producer, RequestOptions } from '@piecework/producer';
import { RequestExistsError } from '@piecework/protocol';
import { payloads, type Stage } from './stage.js';

/*
 * A producer whose n-th call goes wrong. When it was told that a submission failed, a caller asks
 * again with the same id, or does not: then the request never came into being, or it ends as the
 * loss of its producer wants. What a caller was told to have worked has to be there, all of it.
 */

const ITEMS = 7;
const EXACT = { counts: { succeeded: ITEMS - 1, failed: 1 } };
/** A lease that is long beside what it takes to heal anything else. */
const OPTIONS: RequestOptions = { limit: 2, producerLeaseMs: 100_000 };

type Submit = (producer: Producer, id: string) => Promise<unknown>;

/** In chunks of two, as the window allows. */
const submitted: Submit = (producer, id) =>
  producer.submit(payloads(ITEMS), { ...OPTIONS, id, window: 8 });

/** All in one call, or, where the sides are apart, created, filled and sealed in one round trip. */
const atOnce: Submit = (producer, id) => producer.submit(payloads(ITEMS), { ...OPTIONS, id });

/** By a key, which stands for the id already, as whoever had it first died. */
const byKey: Submit = (producer, id) =>
  producer.submit(payloads(ITEMS), { ...OPTIONS, dedupe: { key: id, periodMs: 60_000 } });
/** Due since long ago: its tokens go into the lane from the first chunk on. */
const expedited: Submit = (producer, id) =>
  producer.submit(payloads(ITEMS), { ...OPTIONS, id, window: 8, runAt: 5, expedite: true });

/** In pieces, as somebody does who has them from elsewhere. */
const openedUp: Submit = async (producer, id) => {
  const request = await producer.open({ ...OPTIONS, id });
  try {
    await request.append(...payloads(ITEMS).slice(0, 3));
    await request.flush();
    await request.append(...payloads(ITEMS).slice(3));
    await request.seal();
  } finally {
    request.leave();
  }
};

/** What became of it: 'refused' when the id is taken by what an earlier call left. */
async function attempt(work: Promise<unknown>): Promise<'ok' | 'failed' | 'refused'> {
  return work.then(
    () => 'ok' as const,
    (error: unknown) => (error instanceof RequestExistsError ? 'refused' : 'failed'),
  );
}

async function play(
  stage: Stage,
  submit: Submit,
  asksAgain: boolean,
  isApart = false,
): Promise<string[]> {
  const id = stage.id('request');
  const [faulty, well] = await Promise.all([
    stage.producer('faulty', isApart),
    stage.producer('well'),
  ]);
  const worker = await stage.worker('well');
  await worker.start();

  const asking = async () => {
    const died = stage.faults.died.then(() => 'failed' as const);
    const first = await Promise.race([died, attempt(submit(faulty, id))]);
    return first === 'ok' || !asksAgain ? first : attempt(submit(well, id));
  };
  const asked = asking();
  await stage.heal(asked);
  const told = await asked;
  return stage.judge(id, {
    ...EXACT,
    ...(told === 'ok' ? {} : { orCancelled: ITEMS }),
    orNothing: told === 'failed' && !asksAgain,
  });
}

async function playByKey(stage: Stage): Promise<string[]> {
  const key = `${stage.queue}.request`;
  const { queue, connection } = stage.scene('');
  await queue.dedupe(key, key, 60_000);
  const wrong = await play(stage, byKey, true);
  await connection.client.unlink(queue.keys.dedupe(key));
  return wrong;
}
/** Of a request that begins later: then its next tend is scheduled. */
const delayed: Submit = (producer, id) =>
  producer.submit(payloads(ITEMS), { ...OPTIONS, id, delayMs: 30_000, deadlineMs: 3_600_000 });

export const delayedProducers = {
  'producer of a delayed request in one call, asked again': (stage: Stage) =>
    play(stage, delayed, true),
  'producer of a delayed request, sides apart, asked again': (stage: Stage) =>
    play(stage, delayed, true, true),
};

export const producers = {
  'producer, asked again': (stage: Stage) => play(stage, submitted, true),
  'producer, given up': (stage: Stage) => play(stage, submitted, false),
  'producer of a small request in one call, asked again': (stage: Stage) =>
    play(stage, atOnce, true),
  'producer of a small request in one call, given up': (stage: Stage) => play(stage, atOnce, false),
  'producer of a small request, sides apart, asked again': (stage: Stage) =>
    play(stage, atOnce, true, true),
  'producer of a small request, sides apart, given up': (stage: Stage) =>
    play(stage, atOnce, false, true),
  'producer with a key in one call, asked again': playByKey,
  'producer of an expedited request': (stage: Stage) => play(stage, expedited, true),
  'producer of an open request': (stage: Stage) => play(stage, openedUp, false),
};
