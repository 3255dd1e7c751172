/**
 * The measurement starts servers of its own.
 * @module-tag processes
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Setting } from '../../tools/bench/src/scaling/assumptions.js';
import { clientCosts } from '../../tools/bench/src/scaling/client-costs.js';
import {
  between,
  type CallCost,
  type CallName,
  type Costs,
  QUEUE_CALLS,
  REQUEST_CALLS,
  type ServerCosts,
} from '../../tools/bench/src/scaling/costs.js';
import { withFigures } from '../../tools/bench/src/scaling/page.js';
import { simulate } from '../../tools/bench/src/scaling/simulate.js';
import { listen } from '../support/listen.js';

const PROGRAM = fileURLToPath(new URL('../../tools/bench/dist/scaling-main.js', import.meta.url));

/** Costs of about the size that was measured, times a factor. */
function costs(factor: number): Costs {
  const dear: Partial<Record<CallName, number>> = { turn10: 160, turn100: 800, append500: 1_500 };
  const call = (name: CallName): [CallName, CallCost] => {
    const micros = factor * (dear[name] ?? 60);
    return [name, { micros, insideMicros: micros / 2, calls: 1 }];
  };
  const server = Object.fromEntries([...REQUEST_CALLS, ...QUEUE_CALLS].map(call)) as ServerCosts;
  return { server, client: { perTurnMicros: 80, perOutcomeMicros: 20 } };
}

const EFFORT = { settled: 3_000, events: 200_000 };

function setting(changes: Partial<Setting>): Setting {
  const { masters = 3, requests = 60 } = changes;
  return {
    ...{ masters, workers: 20, handlerMs: 5, concurrency: 10, quantumMs: 50, requests },
    ...{ contended: false, roundTripMs: 0.25, seed: 1 },
    // In turn, so that luck with hash slots is not taken for an effect of the masters.
    placement: Array.from({ length: requests }, (_, i) => i % masters),
    ...changes,
  };
}

const someSetting = fc.record({
  masters: fc.integer({ min: 1, max: 8 }),
  workers: fc.integer({ min: 1, max: 60 }),
  handlerMs: fc.constantFrom(0, 1, 5, 50),
  requests: fc.constantFrom(1, 3, 60),
  contended: fc.boolean(),
  seed: fc.integer({ min: 1, max: 1_000 }),
});
const someFactor = fc.double({ min: 0.2, max: 5, noNaN: true });
/** Always the same: what is judged are samples, of which one in very many is odd. */
const FEW = { numRuns: 25, seed: 20_261_121 };

describe('the simulation', () => {
  test('never goes beyond what any resource can do', () => {
    fc.assert(
      fc.property(someSetting, someFactor, (some, factor) => {
        const at = setting(some);
        const known = costs(factor);
        const { perSecond, sustainable, busy, queueBusy } = simulate(at, known, EFFORT);
        expect(perSecond).toBeGreaterThan(0);
        expect(sustainable).toBeLessThanOrEqual(perSecond);
        for (const share of [...busy, queueBusy]) expect(share).toBeLessThanOrEqual(1);
        // Slots: of the time that handlers take a sample is drawn, hence a tenth more.
        const slots = at.workers * at.concurrency;
        expect((perSecond * at.handlerMs) / 1_000).toBeLessThanOrEqual(slots * 1.1);
        // Masters: an outcome costs no less than its share of the longest turn.
        const least = known.server.turn100.micros / 100;
        expect((perSecond * least) / 1e6).toBeLessThanOrEqual(at.masters);
        const { perOutcomeMicros } = known.client;
        expect((perSecond * perOutcomeMicros) / 1e6).toBeLessThanOrEqual(at.workers * 1.1);
      }),
      FEW,
    );
  });

  test('gets no slower by more masters, nor by more workers while masters have time', () => {
    fc.assert(
      fc.property(someSetting, fc.constantFrom('masters', 'workers'), (some, what) => {
        const less = simulate(setting(some), costs(1), EFFORT);
        const more = simulate(setting({ ...some, [what]: 2 * some[what] }), costs(1), EFFORT);
        // A time slice holds fewer turns when everybody waits for a full master: what ends a slice
        // then weighs more.
        const full = what === 'workers' && Math.max(...less.busy) > 0.7;
        // Both are samples.
        expect(more.perSecond).toBeGreaterThan((full ? 0.5 : 0.9) * less.perSecond);
      }),
      FEW,
    );
  });

  test('follows from its seed alone', () => {
    const at = setting({ contended: true });
    expect(simulate(at, costs(1), EFFORT)).toEqual(simulate(at, costs(1), EFFORT));
  });

  test('says what bounds it', () => {
    const bound = (changes: Partial<Setting>) => simulate(setting(changes), costs(1), EFFORT).bound;
    expect(bound({ workers: 2, handlerMs: 50 })).toBe('handlers');
    expect(bound({ workers: 1, handlerMs: 0 })).toBe('workers’ CPU');
    expect(bound({ workers: 60, handlerMs: 0, requests: 1 })).toBe('request slots');
    expect(bound({ workers: 300, handlerMs: 5, contended: true, masters: 8 })).toBe('queue slot');
  });

  test('of more workers than it simulates one by one, only the waits grow', () => {
    const crowd = (workers: number) =>
      simulate(setting({ workers, handlerMs: 0, requests: 1_000 }), costs(1), {
        settled: 20_000,
        events: 400_000,
      });
    const [some, all] = [crowd(2_000), crowd(8_000)];
    // Less the looks at the agenda that so many more make necessary.
    expect(all.perSecond).toBeLessThanOrEqual(1.05 * some.perSecond);
    expect(all.perSecond).toBeGreaterThan(0.6 * some.perSecond);
    expect((all.meanWaitMs * all.perSecond) / 1_000 / 80_000).toBeCloseTo(1, 5);
  });
});

describe('what it is fed with', () => {
  test('costs between two that were measured lie on the line between them', () => {
    const points = [[1, 10] as const, [10, 100] as const, [100, 190] as const];
    expect([1, 4, 10, 55, 100, 200].map((x) => between(x, points))).toEqual([
      10, 40, 100, 145, 190, 290,
    ]);
  });

  test('a worker process is taken apart into turns and outcomes', () => {
    const apart = clientCosts({ turns: 0.1, micros: 30 }, { turns: 0.01, micros: 21 });
    expect(apart.perTurnMicros).toBeCloseTo(100);
    expect(apart.perOutcomeMicros).toBeCloseTo(20);
  });
});

test('figures replace those of the page, and nothing else of it', () => {
  const page = 'a\n<!-- figures: x -->\nold\n<!-- end -->\nb\n<!-- figures: y -->\n<!-- end -->\n';
  const text = withFigures(page, { x: 'new', y: { head: ['h'], rows: [['1']] } });
  expect(text).toContain('a\n<!-- figures: x -->\n\nnew\n\n<!-- end -->\nb\n');
  expect(text).not.toContain('old');
  expect(text).toContain('| h  |');
  expect(() => withFigures(page, { z: 'new' })).toThrow('no place for “z”');
});

test('a small measurement runs on a server and on a cluster, and its calls are counted', async () => {
  const size = [
    '--calls',
    '20',
    '--lanes',
    '2',
    '--scale',
    '0.02',
    '--most-workers',
    '100',
    '--real',
    '2',
  ];
  const child = spawn(
    process.execPath,
    [PROGRAM, ...size, '--settled', '100', '--events', '2000', '--json'],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const { code, stdout } = await listen(child).finished;
  expect(code).toBe(0);
  const { measured, usual } = JSON.parse(stdout);
  for (const name of [...REQUEST_CALLS, ...QUEUE_CALLS]) {
    expect(measured.costs.server[name].micros, name).toBeGreaterThan(0);
  }
  expect(usual).toHaveLength(80);
  expect(
    measured.runs.map(({ masterMicros }: { masterMicros: number[] }) => masterMicros.length),
  ).toEqual([1, 3]);
  for (const { settled, counts, masterMicros } of measured.runs) {
    expect(settled).toBe(480);
    expect(counts.outcomes).toBe(settled);
    expect(counts.settle).toBeGreaterThan(0);
    expect(Math.min(...masterMicros)).toBeGreaterThan(0);
  }
});
