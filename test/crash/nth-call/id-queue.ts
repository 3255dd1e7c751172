import { IdQueueCommands } from '@piecework/protocol';
import { IdQueue, type IdReference } from '@piecework/queues';
import { moveClock } from '../../support/clock.js';
import { connected } from '../../support/given.js';
import { IdScene, idFaultsOf } from '../../support/given-ids.js';
import { keysOf } from '../../support/leaks.js';
import type { Stage } from './stage.js';

/*
 * A producer, or a consumer, of a queue of ids whose n-th call goes wrong, beside others that are well. In
 * the end every id that somebody was told to be in was done, nothing is counted twice, and no task had two
 * holders at once, by the stamps of the server. Time passes when whoever is well finds everything in
 * others' hands.
 */

const TIMEOUT_MS = 20_000;
const BAD = 'bad';
const ADDS = [['a', BAD], ['a', 'b', 'c'], ['d']];
const ALL = ADDS.flat();

interface Hold {
  readonly id: string;
  readonly number: number;
  readonly attempt: number;
  readonly stamp: number;
}

/** What was seen from outside. */
class Seen {
  readonly holds: Hold[] = [];
  /** Numbers of tasks whose report was said to count. */
  readonly counted: number[] = [];
  /** Reports that were said not to count, or never answered: they may have counted. */
  unsure = 0;

  hold({ id = '', key = '', stamp }: IdReference): Hold {
    const [number, attempt] = key.split('-').map(Number) as [number, number];
    const hold = { id, number, attempt, stamp };
    this.holds.push(hold);
    return hold;
  }
}

async function join(stage: Stage, name: string, how: 'faulty' | 'well'): Promise<IdQueue> {
  const redis = await stage.client(how);
  const rest = { after: 1, ms: 1 };
  // Whoever is well bears it that Redis stands still for a while; the other one tries again himself.
  const patience = how === 'faulty' ? { unavailableMs: 2_000 } : {};
  return IdQueue.join(name, { redis, timeoutMs: TIMEOUT_MS, rest, ...patience });
}

async function work(queue: IdQueue, task: IdReference, seen: Seen): Promise<void> {
  const { number, id } = seen.hold(task);
  const { key = '' } = task;
  seen.unsure += 1;
  if (!(id === BAD ? await queue.fail(key, 'bad') : await queue.done(key))) return;
  seen.unsure -= 1;
  seen.counted.push(number);
}

/** Consumes until nothing is left, or until `onStill` says so when all is in others' hands. */
async function consume(queue: IdQueue, seen: Seen, onStill: () => boolean): Promise<void> {
  for (;;) {
    const pulled = await queue.pull();
    if (pulled.state === 'none' || (pulled.state === 'processing' && onStill())) return;
    const task = pulled.state === 'timed-out' ? await queue.resume(pulled.key) : pulled;
    if (task.state === 'ready') await work(queue, task, seen);
  }
}

const timePasses = () => {
  moveClock(TIMEOUT_MS / 2);
  return false;
};

/** Tries until it works or the actor's process ends; answers what came of it. */
async function persist<T>(stage: Stage, work: () => Promise<T>): Promise<T | undefined> {
  while (!stage.faults.dead) {
    const done = await Promise.race([
      work().then(
        (value) => ({ value }),
        () => undefined,
      ),
      stage.faults.died,
    ]);
    if (done) return done.value;
  }
  return undefined;
}

/** What is wrong in the end: `asked` was asked to be added, of which `sure` is known to be in. */
async function judge(
  scene: IdScene,
  seen: Seen,
  asked: readonly string[],
  sure: readonly string[],
): Promise<string[]> {
  const picture = await scene.picture();
  const { pending, tasks, state } = picture;
  const wrong = idFaultsOf(picture);
  if (pending.length + Object.keys(tasks).length > 0) wrong.push('something is left');
  const done = new Map(seen.holds.map(({ number, id }) => [number, id]));
  const ids = [...done.values()];
  const times = (list: readonly string[], id: string) => list.filter((one) => one === id).length;
  for (const id of new Set([...asked, ...ids])) {
    const [n, least, most] = [times(ids, id), times(sure, id), times(asked, id)];
    if (n < least || n > most) wrong.push(`${n} tasks of ${id}, not ${least} to ${most}`);
  }
  const [completed, failures] = [Number(state['completed'] ?? 0), Number(state['failures'] ?? 0)];
  if (completed !== ids.length) wrong.push(`completed ${completed}, of ${ids.length} handed out`);
  if (failures !== times(ids, BAD)) wrong.push(`${failures} failures`);
  const { counted } = seen;
  if (new Set(counted).size !== counted.length) wrong.push(`counted twice: ${counted}`);
  if (completed > counted.length + seen.unsure) wrong.push('counted without a report');
  return [...wrong, ...twoAtOnce(seen.holds)];
}

function twoAtOnce(holds: readonly Hold[]): string[] {
  const sorted = holds.toSorted((a, b) => a.number - b.number || a.attempt - b.attempt);
  return sorted.flatMap((hold, i) => {
    const next = sorted[i + 1];
    if (next?.number !== hold.number) return [];
    const attempts = next.attempt - hold.attempt;
    if (attempts > 0 && next.stamp >= hold.stamp + attempts * TIMEOUT_MS) return [];
    return [`two holders at once: ${JSON.stringify([hold, next])}`];
  });
}

/** Plays with a queue, judges what became of it and drops it. */
async function play(
  stage: Stage,
  story: (name: string, seen: Seen) => Promise<{ asked: string[]; sure: string[] }>,
): Promise<string[]> {
  const name = `${stage.queue}.ids`;
  const seen = new Seen();
  const { asked, sure } = await story(name, seen);
  const well = await join(stage, name, 'well');
  await consume(well, seen, timePasses);
  const connection = await connected();
  const life = String(
    await connection.client.hget(new IdQueueCommands(connection, name).keys.state, 'life'),
  );
  const wrong = await judge(new IdScene(connection, name, life), seen, asked, sure);
  await well.drop();
  await well.close();
  for (const key of await keysOf(connection.client, name)) wrong.push(`${key} is left`);
  return wrong;
}

/** Two callers of one object, until all that is left is in others' hands, or it died. */
const consumer = (stage: Stage) =>
  play(stage, async (name, seen) => {
    const well = await join(stage, name, 'well');
    for (const ids of ADDS) await well.add(ids);
    const faulty = await persist(stage, () => join(stage, name, 'faulty'));
    const caller = () => persist(stage, () => consume(faulty as IdQueue, seen, () => true));
    if (faulty) await Promise.all([caller(), caller()]);
    await faulty?.close();
    return { asked: ALL, sure: ALL };
  });

/** As before, with time that passes while it works: others resume what it has, and it reports late. */
const late = (stage: Stage) =>
  play(stage, async (name, seen) => {
    const well = await join(stage, name, 'well');
    for (const ids of ADDS) await well.add(ids);
    const faulty = await persist(stage, () => join(stage, name, 'faulty'));
    const passing = async () => {
      const pulled = await (faulty as IdQueue).pull();
      if (pulled.state === 'none' || pulled.state === 'processing') return true;
      const task = pulled.state === 'ready' ? pulled : await (faulty as IdQueue).resume(pulled.key);
      if (task.state !== 'ready') return false;
      moveClock(TIMEOUT_MS);
      // Every other time they are several who want what it has.
      const takers = seen.holds.length % 2 ? [] : [well, faulty as IdQueue, well];
      const asked = await Promise.all(takers.map((taker) => taker.resume(task.key)));
      await work(faulty as IdQueue, task, seen);
      for (const theirs of asked) if (theirs.state === 'ready') await work(well, theirs, seen);
      return false;
    };
    if (faulty) while ((await persist(stage, passing)) === false);
    await faulty?.close();
    return { asked: ALL, sure: ALL };
  });

/** Whoever is told of an error adds the same again. */
const producer = (stage: Stage) =>
  play(stage, async (name, seen) => {
    const well = await join(stage, name, 'well');
    const faulty = await persist(stage, () => join(stage, name, 'faulty'));
    const sure: string[] = [];
    for (const ids of faulty ? ADDS : [])
      if ((await persist(stage, () => (faulty as IdQueue).add(ids))) !== undefined)
        sure.push(...ids);
    await faulty?.close();
    await consume(well, seen, timePasses);
    return { asked: ALL, sure };
  });

export const idQueues = {
  'producer of ids': producer,
  'consumer of ids': consumer,
  'consumer of ids that is late': late,
};
