import type { Notifier } from '@piecework/notifier';
import { payloads, type Stage } from './stage.js';

/*
 * A notifier whose n-th call goes wrong, awaiting a completion and reading the results meanwhile.
 * When its process ended, another goes on behind the last result that was given out.
 */

const ITEMS = 6;

interface Reading {
  readonly indexes: number[];
  cursor: string | undefined;
}

async function read(notifier: Notifier, id: string, reading: Reading): Promise<void> {
  const { cursor } = reading;
  const results = notifier.results(id, { failed: true, ...(cursor ? { cursor } : {}) });
  for await (const item of results) {
    reading.indexes.push(item.index);
    reading.cursor = item.cursor;
  }
}

async function awaited(stage: Stage): Promise<string[]> {
  const id = stage.id('request');
  const reading: Reading = { indexes: [], cursor: undefined };
  const told: unknown[] = [];
  const wait = async (notifier: Notifier) => {
    const reads = read(notifier, id, reading);
    // A notifier that is abandoned fails both.
    reads.catch(() => {});
    told.push((await notifier.completion(id)).counts);
    await reads;
  };
  const producer = await stage.producer('well');
  await producer.submit(payloads(ITEMS), { id, limit: 2 });
  const faulty = await stage.notifier('faulty', { sweepMs: 200 });
  const waiting = (async () => {
    const over = wait(faulty);
    over.catch(() => {});
    const ended = await Promise.race([over.then(() => false), stage.faults.died.then(() => true)]);
    if (!ended) return;
    await faulty.close();
    await over.catch(() => {});
    told.length = 0;
    await wait(await stage.notifier('well'));
  })();
  waiting.catch(() => {});
  await (await stage.worker('well')).start();
  await stage.heal(waiting);
  const wrong = await stage.judge(id, { counts: { succeeded: ITEMS - 1, failed: 1 } });
  const indexes = reading.indexes.sort((a, b) => a - b).join();
  if (indexes !== '0,1,2,3,4,5') wrong.push(`read the results ${indexes}`);
  const { total, succeeded, failed } = (told[0] ?? {}) as Record<string, number>;
  if (told.length !== 1 || total !== ITEMS || succeeded !== ITEMS - 1 || failed !== 1) {
    wrong.push(`was told ${JSON.stringify(told)}`);
  }
  return wrong;
}

export const notifiers = { notifier: awaited };
