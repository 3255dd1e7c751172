import { TimedCommands, type TimedOutcome } from '@piecework/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clockOffset, moveClock, useTestClock, withOwnClock } from '../support/clock.js';
import { connected, freshName } from '../support/given.js';
import { playsAll } from '../support/mode.js';

/*
 * Random histories of a timed set against a model of it: who gets what, in which order, what counts when it
 * is settled, and that no key has two leases at once. Time goes in steps so long that what the calls
 * themselves take does not matter.
 */

useTestClock();

const STEP_MS = 60_000;
const LEASE_MS = 2 * STEP_MS;
const KEYS = ['a', 'b', 'c', 'd'];
const HANDS = 3;
const runs = Number(process.env['PIECEWORK_RUNS'] ?? (playsAll ? 60 : 25));
const seed = Number(process.env['PIECEWORK_SEED'] ?? 20_261_121);

interface Lease {
  readonly token: string;
  readonly at: number;
  readonly ends: number;
  after: number | 'gone' | undefined;
}

interface Entry {
  due: number;
  lease?: Lease | undefined;
}

class World {
  readonly #set: TimedCommands;
  readonly #base: number;
  readonly #model = new Map<string, Entry>();
  readonly #numbers = { put: 0, settle: 0 };
  readonly #takes = Array.from({ length: HANDS }, () => 0);
  /** Every lease that anybody was given: what he may still try to settle. */
  readonly #leases: { readonly key: string; readonly token: string }[] = [];
  took = 0;
  lost = 0;

  constructor(set: TimedCommands, base: number) {
    this.#set = set;
    this.#base = base;
  }

  /** The least that the server's clock can say now; it is never a step ahead of it. */
  get #now(): number {
    return this.#base + clockOffset();
  }

  #lives = (lease: Lease | undefined): lease is Lease =>
    lease !== undefined && lease.ends > this.#now + STEP_MS / 2;

  /** Puts a key to a time between two steps; twice, as if the reply was lost. */
  async put(key: string, steps: number, holder: boolean): Promise<void> {
    const time = this.#now + (steps + 0.5) * STEP_MS;
    const entry = this.#model.get(key);
    const token = holder ? (entry?.lease?.token ?? '') : '';
    this.#numbers.put += 1;
    for (const _ of [1, 2])
      await this.#set.put('p', this.#numbers.put, [{ key, token, time, payload: '' }]);
    if (entry && this.#lives(entry.lease) && entry.lease.token !== token) {
      entry.lease.after = time;
      entry.due = Math.max(time, entry.lease.ends);
    } else this.#model.set(key, { due: time });
  }

  async take(hand: number, count: number, again: boolean): Promise<void> {
    const number = (this.#takes[hand] ?? 0) + 1;
    this.#takes[hand] = number;
    const took = await this.#set.take(`h${hand}`, number, count, LEASE_MS);
    if (took.verdict === 'late') throw new Error('late');
    const expected: string[] = [];
    const inOrder = [...this.#model].sort(([k, a], [l, b]) => a.due - b.due || (k < l ? -1 : 1));
    for (const [key, entry] of inOrder) {
      if (entry.due > this.#now + STEP_MS / 4 || expected.length === count) break;
      if (entry.lease?.after === 'gone') {
        this.#model.delete(key);
        continue;
      }
      const at = entry.lease ? (entry.lease.after ?? entry.lease.at) : entry.due;
      if (this.#lives(entry.lease)) throw new Error(`${key} would be in two hands`);
      expected.push(key);
      entry.lease = { token: took.token, at: Number(at), ends: took.ends, after: undefined };
      entry.due = took.ends;
      this.#leases.push({ key, token: took.token });
    }
    const found = took.taken.map(({ key, at }) => ({ key, at }));
    expect(found).toEqual(expected.map((key) => ({ key, at: this.#model.get(key)?.lease?.at })));
    this.took += found.length;
    if (!again || found.length === 0) return;
    const same = await this.#set.take(`h${hand}`, number, count, LEASE_MS);
    expect(same).toMatchObject({ taken: took.taken, ends: took.ends });
  }

  /** By somebody who has it, had it, or never had it; twice, as if the reply was lost. */
  async settle(which: number, verb: TimedOutcome['verb']): Promise<void> {
    const lease = this.#leases[which % this.#leases.length];
    const key = verb === 'remove' || !lease ? (KEYS[which % KEYS.length] as string) : lease.key;
    const token = verb === 'remove' ? '' : (lease?.token ?? 'nobody~1');
    const value = verb === 'retry' ? this.#now + 1.5 * STEP_MS : '';
    this.#numbers.settle += 1;
    const outcome = { key, token, verb, value };
    const [verdict] = await this.#set.settle('s', this.#numbers.settle, 5, [outcome]);
    expect(await this.#set.settle('s', this.#numbers.settle, 5, [outcome])).toEqual([verdict]);
    expect(verdict).toBe(this.#settled(key, token, verb, Number(value)));
    if (verdict === 'lost') this.lost += 1;
  }

  #settled(key: string, token: string, verb: string, time: number): 'ok' | 'lost' {
    const entry = this.#model.get(key);
    if (!entry) return 'lost';
    const { lease } = entry;
    if (verb === 'remove') {
      const there = lease?.after !== 'gone';
      if (this.#lives(lease)) {
        lease.after = 'gone';
        entry.due = lease.ends;
      } else this.#model.delete(key);
      return there ? 'ok' : 'lost';
    }
    if (lease?.token !== token) return 'lost';
    entry.lease = undefined;
    const next = verb === 'retry' ? time : verb === 'back' ? lease.at : undefined;
    const due = lease.after ?? next;
    if (due === undefined || due === 'gone') this.#model.delete(key);
    else entry.due = due;
    return 'ok';
  }

  /** In the end everything that is there comes, and then nothing is left. */
  async drain(): Promise<void> {
    for (let i = 0; i < 12; i += 1) {
      moveClock(STEP_MS);
      await this.take(0, 9, false);
      for (const which of this.#leases.keys()) await this.settle(which, 'done');
    }
    expect(await this.#set.counts()).toEqual({
      ...{ waiting: 0, leased: 0, next: undefined },
      failures: expect.any(Number),
    });
  }
}

const step = fc.record({
  what: fc.constantFrom(
    ...(['put', 'put', 'take', 'take', 'take', 'pass', 'pass', 'done', 'retry'] as const),
    ...(['back', 'discard', 'remove'] as const),
  ),
  which: fc.nat({ max: 30 }),
  flag: fc.boolean(),
});

describe('whatever is put, taken, settled, removed and late', () => {
  it('is in one hand at a time, in order, and comes as often as it should', async () => {
    const connection = await connected();
    let took = 0;
    let lost = 0;
    const property = fc.asyncProperty(
      fc.array(step, { minLength: 30, maxLength: 80, size: 'max' }),
      (steps) =>
        withOwnClock(async () => {
          const set = new TimedCommands(connection, 'retry', freshName('timed'));
          const first = await set.take('clock', 1, 1, LEASE_MS);
          if (first.verdict === 'late') throw new Error('late');
          const world = new World(set, first.now);
          for (const { what, which, flag } of steps) {
            if (what === 'put') await world.put(KEYS[which % 4] as string, (which % 5) - 2, flag);
            else if (what === 'take') await world.take(which % HANDS, 1 + (which % 3), flag);
            else if (what === 'pass') moveClock(STEP_MS);
            else await world.settle(which, what);
          }
          await world.drain();
          took += world.took;
          lost += world.lost;
        }),
    );
    await fc.assert(property, { numRuns: runs, seed, endOnFailure: true });
    console.log(`timed sets: ${runs} histories, ${took} taken, ${lost} settled by who had lost it`);
    expect(took).toBeGreaterThan(runs);
    expect(lost).toBeGreaterThan(runs);
  }, 300_000);
});
