import { setTimeout as sleep } from 'node:timers/promises';
import { RetryQueue, Scheduler } from '@piecework/queues';
import { clockOffset } from '../../support/clock.js';
import { connected } from '../../support/given.js';
import { keysOf } from '../../support/leaks.js';
import { until } from '../../support/until.js';
import { Quiet } from './quiet.js';
import type { Stage } from './stage.js';

/*
 * A timed set and its takers, of whom one has the n-th call go wrong; when its process ended, another one
 * goes on. Whatever it was, nothing is lost, and by the server's clock no key is in two hands.
 */

const LEASE_MS = 25_000;
const POLL = { pollMs: 5 };

interface Lease {
  readonly key: string;
  /** Server time. */
  readonly from: number;
  readonly until: number;
  /** Somebody began to settle it. */
  settled: boolean;
}

/** What was taken, by whom, and what came of it. */
class Record {
  readonly leases: Lease[] = [];
  readonly wrong: string[] = [];
  /** Keys that somebody was told to have settled for good. */
  readonly ended: string[] = [];
  moves = 0;

  of(key: string): Lease[] {
    return this.leases.filter((one) => one.key === key);
  }

  /** Each was settled for good as often as is said here; a dead one could not always tell. */
  judge(expected: readonly string[], stage: Stage): void {
    const told = [...this.ended];
    for (const key of expected) {
      const i = told.indexOf(key);
      if (i >= 0) told.splice(i, 1);
      else if (!stage.faults.dead) this.wrong.push(`nobody was told that ${key} is settled`);
    }
    if (told.length > 0) this.wrong.push(`settled too often: ${told}`);
  }

  taken(key: string, until: number): Lease {
    this.moves += 1;
    const from = until - LEASE_MS;
    const other = this.leases.find((one) => one.key === key && !one.settled && one.until > from);
    if (other) this.wrong.push(`${key} taken at ${from}, and leased until ${other.until}`);
    const lease = { key, from, until, settled: false };
    this.leases.push(lease);
    return lease;
  }

  /** Settles a lease by `call`, which answers whether it counted. */
  async settle(lease: Lease, call: () => Promise<boolean>, forGood = true): Promise<void> {
    lease.settled = true;
    this.moves += 1;
    const counted = await call();
    this.moves += 1;
    if (forGood && counted) this.ended.push(lease.key);
  }
}

/** Lets time pass whenever nothing moves, until `over`. */
async function pass(record: Record, over: () => Promise<boolean>): Promise<void> {
  const quiet = new Quiet();
  while (!(await over())) {
    await quiet.see(`${record.moves} moves, leases ${JSON.stringify(record.leases)}`);
    await sleep(3);
  }
}

const nameOf = (stage: Stage) => `${stage.queue}.timed`;

async function schedulerOf(stage: Stage, how: 'faulty' | 'well'): Promise<Scheduler<string>> {
  return new Scheduler({ redis: await stage.client(how), name: nameOf(stage) });
}

async function retryQueueOf(stage: Stage, how: 'faulty' | 'well'): Promise<RetryQueue<string>> {
  return new RetryQueue({ redis: await stage.client(how), name: nameOf(stage) });
}

/** Plays `work` with a faulty actor, and again with one that is well when its process ended. */
async function played<Actor extends AsyncDisposable>(
  stage: Stage,
  open: (how: 'faulty' | 'well') => Promise<Actor>,
  work: (actor: Actor) => Promise<unknown>,
): Promise<void> {
  await using faulty = await open('faulty');
  const first = work(faulty);
  first.catch(() => {});
  const died = stage.faults.died.then(() => 'died' as const);
  if ((await Promise.race([died, first])) !== 'died') return;
  await using another = await open('well');
  await work(another);
}

/** What is left but for callers that go by themselves. */
async function swept(stage: Stage): Promise<string[]> {
  const { client } = await connected();
  const wrong: string[] = [];
  for (const key of await keysOf(client, nameOf(stage))) {
    if (!key.includes(':caller:')) wrong.push(`${key} is left`);
    else if ((await client.pttl(key)) < 0) wrong.push(`${key} stays for ever`);
    await client.unlink(key);
  }
  return wrong;
}

const sorted = (keys: Iterable<string>) => [...keys].sort().join();

/** The first time that a task is tried it comes again; the last one never succeeds. */
export async function consumed(stage: Stage): Promise<string[]> {
  const record = new Record();
  const names = ['a', 'b', 'c', 'd', 'bad'];
  await using well = await retryQueueOf(stage, 'well');
  for (const name of names) await well.put(name, { key: name, at: 1 });
  const over = new AbortController();
  // The first who gets 'a' holds it until somebody else has it.
  let late = false;
  const consume = async (queue: RetryQueue<string>) => {
    const stream = queue.items({ ...POLL, demand: 2, leaseMs: LEASE_MS, signal: over.signal });
    const running: Promise<void>[] = [];
    for await (const task of stream) {
      const lease = record.taken(task.key, task.leasedUntil);
      const call = async () => {
        if (task.key === 'a' && !late) {
          late = true;
          await until(() => over.signal.aborted || record.of('a').length > 1);
          if (await task.retry({ delayMs: 0 })) record.wrong.push('settled by who had lost it');
        } else if (task.numFailures === 0) {
          const retried = () => task.retry({ delayMs: 5_000 });
          await record.settle(lease, retried, false);
        } else if (task.key === 'bad') {
          await record.settle(lease, () => task.discard('bad'));
        } else {
          await record.settle(lease, () => task.done());
        }
      };
      // What could not be settled comes back with the end of its lease.
      running.push(call().catch(() => {}));
    }
    await Promise.all(running);
  };
  const consuming = Promise.all([
    played(stage, (how) => retryQueueOf(stage, how), consume),
    consume(well),
  ]);
  consuming.catch(() => {});
  await pass(record, async () => {
    const { waiting, leased } = await well.counts();
    return waiting + leased === 0;
  });
  over.abort();
  await consuming;
  const tried = new Set(record.leases.map(({ key }) => key));
  if (sorted(tried) !== sorted(names)) record.wrong.push(`taken were ${sorted(tried)}`);
  record.judge(names, stage);
  const failures: string[] = [];
  for await (const { key, numFailures } of well.failures()) failures.push(`${key} ${numFailures}`);
  if (failures.join() !== 'bad 2') record.wrong.push(`failures: ${failures}`);
  await well.drop();
  return [...record.wrong, ...(await swept(stage))];
}

/** Objects come, are taken and removed; one is moved while it is locked. */
export async function scheduled(stage: Stage, stream: boolean): Promise<string[]> {
  const record = new Record();
  const names = ['a', 'b', 'c', 'later'];
  await using well = await schedulerOf(stage, 'well');
  await using another = await schedulerOf(stage, 'well');
  const now = Date.now() + clockOffset();
  for (const name of names) await well.enqueue(name, name === 'later' ? now + 15_000 : 1);
  const over = new AbortController();
  let moved = false;
  const remove = async (scheduler: Scheduler<string>, object: string, until: number) => {
    const lease = record.taken(object, until);
    if (object === 'b' && !moved) {
      moved = true;
      await well.enqueue('b', 2);
    }
    await record.settle(lease, () => scheduler.remove(object)).catch(() => {});
  };
  const take = async (scheduler: Scheduler<string>) => {
    if (stream) {
      const due = scheduler.due({ ...POLL, lockMs: LEASE_MS, signal: over.signal });
      for await (const { object, lockedUntil } of due) await remove(scheduler, object, lockedUntil);
      return;
    }
    while (!over.signal.aborted) {
      const due = await scheduler.takeDue({ lockMs: LEASE_MS, count: 2 }).catch((error) => {
        if (stage.faults.dead) throw error;
        return [];
      });
      for (const { object, lockedUntil } of due) await remove(scheduler, object, lockedUntil);
      await sleep(3);
    }
  };
  const taking = Promise.all([
    played(stage, (how) => schedulerOf(stage, how), take),
    take(another),
  ]);
  taking.catch(() => {});
  await pass(record, async () => {
    const { waiting, locked } = await well.counts();
    return waiting + locked === 0;
  });
  over.abort();
  await taking;
  const tried = new Set(record.leases.map(({ key }) => key));
  if (sorted(tried) !== sorted(names)) record.wrong.push(`taken were ${sorted(tried)}`);
  record.judge([...names, 'b'], stage);
  if (record.of('b').length < 2)
    record.wrong.push('what was moved while it was locked did not come again');
  return [...record.wrong, ...(await swept(stage))];
}

/** Somebody waits, and is told of what another puts. */
export async function woken(stage: Stage): Promise<string[]> {
  const record = new Record();
  await using well = await schedulerOf(stage, 'well');
  const wait = async (scheduler: Scheduler<string>) => {
    for (const name of ['a', 'b']) {
      for (let found = false; !found; ) {
        const waiting = scheduler.takeDue({ lockMs: LEASE_MS, waitMs: 25_000 });
        waiting.catch(() => {});
        await well.enqueue(name, 1);
        const [due] = await waiting.catch((error: unknown) => {
          if (stage.faults.dead) throw error;
          return [];
        });
        if (!due) continue;
        found = true;
        const lease = record.taken(due.object, due.lockedUntil);
        await record.settle(lease, () => scheduler.remove(due.object)).catch(() => {});
      }
    }
  };
  await played(stage, (how) => schedulerOf(stage, how), wait);
  // What a dead one had locked, or what was put once too often, comes yet.
  await pass(record, async () => {
    for (const { object, lockedUntil } of await well.takeDue({ lockMs: LEASE_MS })) {
      const lease = record.taken(object, lockedUntil);
      await record.settle(lease, () => well.remove(object));
    }
    const { waiting, locked } = await well.counts();
    return waiting + locked === 0;
  });
  if (sorted(new Set(record.ended)) !== 'a,b') record.wrong.push(`removed were ${record.ended}`);
  return [...record.wrong, ...(await swept(stage))];
}

/** What is put is there once, however its calls went; one that was told to have failed, at most once. */
export async function put(stage: Stage): Promise<string[]> {
  const told = new Set<string>();
  const asked = new Set<string>();
  await using well = await retryQueueOf(stage, 'well');
  let round = 0;
  const work = async (queue: RetryQueue<string>) => {
    round += 1;
    for (const name of ['a', 'b', 'c']) {
      const key = `${name}${round}`;
      asked.add(key);
      await queue.put(key, { at: 1 });
      told.add(key);
    }
  };
  // Done while it is put: a call that is made again finds nothing of what the first one put.
  const found: string[] = [];
  const over = new AbortController();
  const consume = async () => {
    for await (const task of well.items({ ...POLL, demand: 5, signal: over.signal })) {
      found.push(task.payload);
      await task.done();
    }
  };
  const consuming = consume();
  await played(stage, (how) => retryQueueOf(stage, how), work);
  await until(async () => {
    const { waiting, leased } = await well.counts();
    return waiting + leased === 0;
  });
  over.abort();
  await consuming;
  const wrong: string[] = [];
  if (new Set(found).size !== found.length) wrong.push(`found twice: ${found}`);
  for (const key of told) if (!found.includes(key)) wrong.push(`${key} is lost`);
  for (const key of found) if (!asked.has(key)) wrong.push(`nobody put ${key}`);
  return [...wrong, ...(await swept(stage))];
}
