import type { Outcome } from '@piecework/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock, withOwnClock } from '../support/clock.js';
import { given, items, PRODUCER, type Scene } from '../support/given.js';
import { keysLeft } from '../support/leaks.js';
import { playsAll } from '../support/mode.js';
import { inspect } from '../support/peek.js';
import { DELAY_MS, LEASE_MS, Model, type Report } from './model.js';

/*
 * The scripts of one request against the model: any commands in any order, by workers that keep to
 * the protocol and by such as come late. After each the reply and all the books are those of the
 * model (I1). PIECEWORK_RUNS says how many runs, PIECEWORK_SEED with which seed.
 */
const runs = Number(process.env['PIECEWORK_RUNS'] ?? (playsAll ? 250 : 60));
const seed = Number(process.env['PIECEWORK_SEED'] ?? 20_261_121);

useTestClock();

interface Real {
  readonly scene: Scene;
  sent: number;
  op: number;
}

type Act = (model: Model, real: Real) => Promise<void>;

/** One command; its reply is compared in `act`, the books after it. */
class Command implements fc.AsyncCommand<Model, Real> {
  readonly #name: string;
  readonly #act: Act;

  constructor(name: string, act: Act) {
    this.#name = name;
    this.#act = act;
  }

  check = () => true;

  async run(model: Model, real: Real): Promise<void> {
    await this.#act(model, real);
    const picture = await inspect(real.scene);
    expect(picture.status).toBe(model.status);
    const complete = model.status === 'complete';
    expect(picture.counts).toEqual(model.counts);
    if (complete) return;
    expect(picture.permits).toEqual(Object.fromEntries(model.permits));
    const owned = picture.pending.filter(({ owner }) => owner !== '~');
    const owners = owned.map(({ index, owner }) => [index, owner]);
    expect(Object.fromEntries(owners)).toEqual(Object.fromEntries(model.owners));
    expect(Object.keys(picture.due).map(Number).sort()).toEqual([...model.parked.keys()].sort());
  }

  toString(): string {
    return this.#name;
  }
}

const worker = fc.constantFrom('a', 'b', 'c');
const report = fc.record({
  index: fc.nat({ max: 9 }),
  kind: fc.constantFrom('s' as const, 's' as const, 'f' as const, 'b' as const),
});

/** Whoever reports of a sub-request has read it once. */
const known = (model: Model, reports: readonly Report[]) =>
  reports.filter(({ index }) => index < model.unread);

const outcomeOf = (generation: number, { index, kind }: Report): Outcome => {
  const entry = `${generation}-${index}`;
  if (kind === 'b') return { entry, kind };
  if (kind === 's') return { entry, kind, value: '1' };
  return { entry, kind, value: '{}', delayMs: DELAY_MS };
};

const commands = [
  fc.integer({ min: 1, max: 3 }).map(
    (n) =>
      new Command(`append ${n}`, async (model, real) => {
        const { request, generation } = real.scene;
        if (model.total + n > 10) return;
        const added = await request.append(generation, PRODUCER, real.sent, items(n, real.sent));
        expect(added.verdict).toBe(model.append(n));
        if (added.verdict === 'ok') real.sent += n;
      }),
  ),
  fc.constant(
    new Command('seal', async (model, { scene, sent }) => {
      const { verdict } = await scene.request.seal(scene.generation, PRODUCER, sent);
      expect(verdict).toBe(model.seal());
    }),
  ),
  fc.record({ who: worker, want: fc.integer({ min: 0, max: 3 }) }).map(
    ({ who, want }) =>
      new Command(`${who} enters for ${want}`, async (model, real) => {
        const { request, generation } = real.scene;
        real.op += 1;
        const entered = await request.enter({
          generation,
          worker: who,
          op: real.op,
          want,
          leaseMs: LEASE_MS,
          tasks: '*',
          epochs: [],
        });
        expect(entered.verdict).toBe(model.enter(who, want));
        if (entered.verdict === 'ok') {
          expect(entered.permits).toBe(model.permits.get(who) ?? 0);
          expect(entered.dueNow).toBe(model.due.length);
        }
      }),
  ),
  fc.record({ who: worker, n: fc.integer({ min: 1, max: 3 }) }).map(
    ({ who, n }) =>
      new Command(`${who} reads ${n}`, async (model, { scene }) => {
        const entries = await scene.request.read(who, n);
        const indexes = entries === 'gone' ? [] : entries.map(({ index }) => index);
        expect(indexes).toEqual(model.read(who, n));
      }),
  ),
  worker.map(
    (who) =>
      new Command(`${who} takes`, async (model, { scene }) => {
        const taken = await scene.request.take(scene.generation, who, 99);
        const expected = model.take(who);
        if (typeof taken === 'string') expect(taken).toBe(expected);
        else expect(taken.entries.map(({ index }) => index).sort()).toEqual([...expected].sort());
      }),
  ),
  fc
    .record({
      who: worker,
      reports: fc.array(report, { maxLength: 5 }),
      keep: fc.nat({ max: 3 }),
      late: fc.constantFrom(false, false, false, true),
    })
    .map(
      ({ who, reports, keep, late }) =>
        new Command(
          `${who} settles ${reports.map(({ index, kind }) => index + kind)}, keeps ${keep}${late ? ', late' : ''}`,
          async (model, real) => {
            const { request, generation } = real.scene;
            const said = known(model, reports);
            // A late call has a number that was used; 0 was, by anybody.
            if (!late) real.op += 1;
            const numbers = {
              op: late ? 0 : real.op,
              leaseMs: LEASE_MS,
              keep,
              running: 0,
              read: 0,
            };
            const outcomes = said.map((one) => outcomeOf(generation, one));
            const { settled } = await request.settle(generation, who, numbers, outcomes);
            expect(settled.verdict).toBe(model.settle(who, said, keep, late));
            if (settled.verdict === 'ok') {
              expect(settled.permits).toBe(model.permits.get(who) ?? 0);
              expect(settled.dueNow).toBe(model.due.length);
            }
          },
        ),
    ),
  worker.map(
    (who) =>
      new Command(`${who} renews`, async (model, { scene }) => {
        const { verdict } = await scene.request.renew(scene.generation, who, LEASE_MS, []);
        expect(verdict).toBe(model.renew(who));
      }),
  ),
  fc.constant(
    new Command('tend', async (model, { scene }) => {
      const { verdict } = await scene.request.tend(scene.generation, '');
      expect(verdict).toBe(model.tend());
    }),
  ),
  // Seldom, as little happens after it.
  fc.nat({ max: 5 }).map(
    (seldom) =>
      new Command(seldom === 0 ? 'cancel' : 'nothing', async (model, { scene }) => {
        if (seldom > 0) return;
        const { verdict } = await scene.request.cancel(scene.generation);
        expect(verdict).toBe(model.cancel());
      }),
  ),
  // Of neither is a lease or a delay a multiple, so that the moments are never the same: not even when the
  // calls take some seconds.
  fc.constantFrom(40_000, 320_000).map(
    (ms) =>
      new Command(`${ms} ms pass`, async (model) => {
        moveClock(ms);
        model.now += ms;
      }),
  ),
];

describe('the scripts of a request do what the model does', () => {
  it('reply by reply and book by book', async () => {
    const ends: Record<string, number> = {};
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 2 }),
      fc.commands(commands, { maxCommands: 60, size: 'max' }),
      (limit, attempts, steps) =>
        withOwnClock(async () => {
          // A producer that is lost would be another story.
          const scene = await given.created({ limit, attempts, producerLeaseMs: 86_400_000 });
          const model = new Model(limit, attempts);
          try {
            const setup = () => ({ model, real: { scene, sent: 0, op: 0 } });
            await fc.asyncModelRun(setup, steps);
            ends[model.status] = (ends[model.status] ?? 0) + 1;
          } finally {
            for (const key of await keysLeft(scene)) await scene.connection.client.unlink(key);
          }
        }),
    );
    await fc.assert(property, { seed, numRuns: runs });
    console.log(`${runs} runs of the model; ended ${JSON.stringify(ends)}`);
    // Or else the commands have become too tame, or too wild, to see everything.
    expect(Object.keys(ends).sort()).toEqual(['cancelling', 'complete', 'open', 'sealed']);
  }, 600_000);
});
