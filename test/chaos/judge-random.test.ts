import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Kind } from '../../tools/chaos/src/evidence/findings.js';
import {
  at,
  countsOf,
  ended,
  foundIn,
  judged,
  type Line,
  type Result,
  ran,
  started,
  submitted,
  told,
  value,
  wasRead,
} from './journals.js';

/*
 * Random histories that are as they should be: several requests, each worked off within its limit by
 * a few workers, some of which are killed or stand still for longer than their lease in the middle of
 * it. The judge must find nothing wrong. Then one thing is made wrong, and it must find exactly that.
 */

const LEASE_MS = 2_000;
const WORKERS = 3;

interface Plan {
  readonly limit: number;
  /** For each item how long it runs, by whom, and what becomes of it first. */
  readonly items: readonly Item[];
}

interface Item {
  readonly runMs: number;
  readonly worker: number;
  readonly fate: 'runs' | 'is retried' | 'fails' | 'is killed' | 'stands still';
}

const item: fc.Arbitrary<Item> = fc.record({
  runMs: fc.integer({ min: 0, max: 20 }),
  worker: fc.nat({ max: WORKERS - 1 }),
  fate: fc.constantFrom(
    ...(['runs', 'runs', 'runs', 'is retried', 'fails', 'is killed', 'stands still'] as const),
  ),
});
const plan: fc.Arbitrary<Plan> = fc.record({
  limit: fc.integer({ min: 1, max: 4 }),
  items: fc.array(item, { minLength: 1, maxLength: 20 }),
});

const SPOILERS = [
  'lost',
  'unexpected',
  'counted twice',
  'miscounted',
  'completed twice',
  'never completed',
  'cap exceeded',
  'key left',
  'cut short',
] as const satisfies readonly Kind[];
type Spoiler = (typeof SPOILERS)[number];

/** The times of one request: each permit is a row of runs, one after the other. */
function work(request: string, { limit, items }: Plan): Line[] {
  const freeAt = Array.from({ length: limit }, () => 10);
  const lines: Line[] = [];
  for (const [index, { runMs, worker, fate }] of items.entries()) {
    const permit = freeAt.indexOf(Math.min(...freeAt));
    const from = freeAt[permit] as number;
    // Who is damaged is a worker of its own, so that nobody else's runs are.
    const name = `worker-${worker}`;
    const victim = `victim-${request}-${index}`;
    const end = from + runMs;
    const again = from + LEASE_MS + runMs + 1;
    if (fate === 'runs' || fate === 'fails') {
      lines.push(
        ...ran(name, request, index, [from, end], fate === 'fails' ? 'failed' : 'succeeded'),
      );
      freeAt[permit] = end;
      continue;
    }
    if (fate === 'is retried') {
      lines.push(...ran(name, request, index, [from, end], 'failed'));
      lines.push(...ran(name, request, index, [end, end + runMs], 'succeeded', 2));
      freeAt[permit] = end + runMs;
      continue;
    }
    const fault = fate === 'is killed' ? 'kill worker' : 'freeze worker';
    const lastsMs = fate === 'is killed' ? 0.5 : LEASE_MS + 500;
    lines.push(
      started(victim, LEASE_MS),
      ...ran(victim, request, index, fate === 'is killed' ? [from] : [from, end + lastsMs + 1]),
      at(end, 'nemesis', { does: 'fault', fault, target: victim }),
      at(end + lastsMs, 'nemesis', { did: 'fault', fault, target: victim }),
      ...ran(name, request, index, [again, again + runMs]),
    );
    freeAt[permit] = again + runMs;
  }
  return lines;
}

function history(plans: readonly Plan[], spoiler?: Spoiler): Line[] {
  const lines = Array.from({ length: WORKERS }, (_, n) => started(`worker-${n}`, LEASE_MS));
  for (const [n, one] of plans.entries()) {
    const request = `r-${n}`;
    const { items, limit } = one;
    const spoilt = n === 0 ? spoiler : undefined;
    const failed = items.filter(({ fate }) => fate === 'fails').length;
    const counts = countsOf(items.length - failed, failed);
    const results = items.map(
      ({ fate }, index): Result =>
        fate === 'fails' ? { index, status: 'failed', item: null } : value(index),
    );
    const done = work(request, one);
    const ms = 1_000 + Math.max(...done.map((line) => line.ms));
    lines.push(...submitted(request, items.length, limit), ...done);
    if (spoilt === 'cap exceeded') {
      // As many as are allowed, and one more, in the calm after all else.
      const over = Array.from({ length: limit + 1 }, () =>
        ran('worker-0', request, 0, [ms, ms + 1]),
      );
      lines.push(...over.flat());
    }
    if (spoilt !== 'never completed') {
      const said = spoilt === 'miscounted' ? skewed(counts) : counts;
      lines.push(...told(request, said, { ms }));
      lines.push(wasRead(request, spoil(results, spoilt), said, { ms: ms + 1 }));
    }
    if (spoilt === 'completed twice') {
      lines.push(...told(request, counts, { ms, process: 'late', generation: 8 }));
    }
    const left = spoilt === 'key left' ? ['request:{r-0}'] : [];
    const end = ended(request, spoilt === 'miscounted' ? skewed(counts) : counts, left);
    const last = n === plans.length - 1 || spoilt === 'key left';
    const word = ({ event }: Line) => ('did' in event ? event.did : '');
    lines.push(...end.filter((line) => last || word(line) !== 'look for keys'));
  }
  const drained = ({ event }: Line) => 'did' in event && event.did === 'drain';
  const checked = ({ event }: Line) => 'did' in event && event.did === 'look for keys';
  if (spoiler === 'cut short') return lines.filter((line) => !drained(line));
  // The check that found the key is the one that counts.
  if (spoiler !== 'key left') return lines;
  return lines.filter((line, i) => !checked(line) || i === lines.findIndex(checked));
}

/** One that succeeded is counted as failed, or the other way round. */
function skewed({ succeeded, failed }: ReturnType<typeof countsOf>) {
  return succeeded > 0 ? countsOf(succeeded - 1, failed + 1) : countsOf(1, failed - 1);
}

function spoil(results: readonly Result[], spoiler: Spoiler | undefined): Result[] {
  const [first, ...others] = results as [Result, ...Result[]];
  if (spoiler === 'lost') return others;
  if (spoiler === 'counted twice') return [...results, first];
  if (spoiler === 'unexpected') return [...results, value(results.length)];
  return [...results];
}

const RUNS = Number(process.env['PIECEWORK_RUNS'] ?? 200);

describe('random histories', () => {
  it('that are as they should be are found so', async () => {
    const seen = { zombies: 0, kills: 0, retries: 0 };
    await fc.assert(
      fc.asyncProperty(fc.array(plan, { minLength: 1, maxLength: 4 }), async (plans) => {
        const verdict = await judged(history(plans));
        expect(foundIn(verdict)).toEqual({});
        seen.zombies += verdict.cap.zombieRuns;
        seen.kills += verdict.executions.repeats['after a kill'];
        seen.retries += verdict.executions.repeats['after a failure'];
      }),
      { numRuns: RUNS, seed: 20_261_121 },
    );
    // Or it would have been shown nothing worth judging.
    for (const n of Object.values(seen)) expect(n).toBeGreaterThan(RUNS / 2);
  });

  it('in which one thing is wrong are found to have that one', async () => {
    const spoiler = fc.constantFrom(...SPOILERS);
    await fc.assert(
      fc.asyncProperty(
        fc.array(plan, { minLength: 1, maxLength: 4 }),
        spoiler,
        async (plans, kind) => {
          expect(foundIn(await judged(history(plans, kind)))).toEqual({ [kind]: 1 });
        },
      ),
      { numRuns: RUNS, seed: 20_261_122 },
    );
  });
});
