import { describe, expect, it } from 'vitest';
import type { Act } from '../../tools/chaos/src/contract/plan.js';
import {
  at,
  countsOf,
  ended,
  foundIn,
  judged,
  type Line,
  outcomeOf,
  ran,
  started,
  submitted,
  told,
  value,
  wasRead,
} from './journals.js';

/** A step of meddling: asked for at `ms`, acknowledged at `done`, if it was. */
function step(number: number, act: Act, limit: number, ms: number, done?: number): Line[] {
  const about = { request: 'r', step: number, act } as const;
  return [
    at(ms, 'waiter-9', { does: 'control', ...about, limit }),
    ...(done === undefined ? [] : [at(done, 'waiter-9', { did: 'control', ...about })]),
  ];
}
const settled = (process: string, index: number, endedMs: number, ms: number): Line =>
  at(ms, process, {
    ...{ did: 'settle', request: 'r', index },
    endedNs: String(endedMs * 1e6),
  });
const begun: readonly Line[] = [started('worker-1'), started('worker-2'), ...submitted('r', 4, 2)];
const counts = countsOf(4);
const over: readonly Line[] = [
  ...told('r', counts),
  wasRead(
    'r',
    [0, 1, 2, 3].map((index) => value(index)),
    counts,
  ),
  ...ended('r', counts),
];

describe('a limit that changes', () => {
  const run = (index: number, from: number, to: number, process = 'worker-1') =>
    ran(process, 'r', index, [from, to]);
  /** 0 and 1 run when it is lowered to 1; 0 ends, and its settle is answered at 130. */
  const lowered = [...begun, ...step(0, 'limit', 1, 100, 110), ...run(0, 50, 120)];
  const known = settled('worker-1', 0, 120, 130);

  it('lets running handlers continue, and the next one begin when it has ended', async () => {
    const lines = [...lowered, known, ...run(1, 50, 200), ...run(2, 200, 210), ...run(3, 210, 220)];
    expect(foundIn(await judged([...lines, ...over]))).toEqual({});
  });

  it('is exceeded by one that begins after the next settle of its worker', async () => {
    const lines = [...lowered, known, ...run(1, 50, 200), ...run(2, 140, 150), ...run(3, 210, 220)];
    const verdict = await judged([...lines, ...over]);
    expect(foundIn(verdict)).toEqual({ 'cap exceeded': 1 });
    expect(verdict.findings['cap exceeded'].examples[0]).toContain('number 2 of 1');
  });

  it('is not known to a worker that has not settled since', async () => {
    const others = [...run(1, 50, 200), ...run(2, 140, 150, 'worker-2'), ...run(3, 210, 220)];
    expect(foundIn(await judged([...lowered, known, ...others, ...over]))).toEqual({});
    // What it reported had ended before, so perhaps it was settled before.
    const early = [...begun, ...step(0, 'limit', 1, 100, 110), ...run(0, 50, 105)];
    const lines = [...early, settled('worker-1', 0, 105, 130)];
    const rest = [...run(1, 50, 200), ...run(2, 140, 150), ...run(3, 210, 220)];
    expect(foundIn(await judged([...lines, ...rest, ...over]))).toEqual({});
  });

  it('may be used from when it was asked for, acknowledged or not', async () => {
    const lines = (ms: number) => [
      ...[...begun, ...step(0, 'limit', 3, ms)],
      ...[...run(0, 50, 200), ...run(1, 50, 200), ...run(2, 120, 200), ...run(3, 210, 220)],
      ...over,
    ];
    expect(foundIn(await judged(lines(110)))).toEqual({});
    expect(foundIn(await judged(lines(130)))).toEqual({ 'cap exceeded': 1 });
  });

  it('is nothing while the request is paused', async () => {
    const paused = [...begun, ...step(0, 'pause', 0, 100, 110), ...step(1, 'resume', 2, 300, 310)];
    const ran0 = [...run(0, 50, 120), known, ...run(1, 50, 125)];
    const lawful = [...paused, ...ran0, ...run(2, 300, 320), ...run(3, 300, 320), ...over];
    expect(foundIn(await judged(lawful))).toEqual({});
    const unlawful = [...paused, ...ran0, ...run(2, 250, 260), ...run(3, 300, 320), ...over];
    expect(foundIn(await judged(unlawful))).toEqual({ 'cap exceeded': 1 });
  });
});

const allRan = [0, 1, 2, 3].flatMap((n) => ran('worker-1', 'r', n, [10 * n + 10, 10 * n + 15]));

describe('a request that was ended', () => {
  const cancelled = countsOf(2, 0, 2);
  const told2 = [
    ...told('r', cancelled),
    wasRead('r', [value(0), value(1)], cancelled),
    ...ended('r', cancelled),
  ];

  it('may lack what was cancelled, if somebody asked for it', async () => {
    const lines = [...begun, ...allRan.slice(0, 4), ...told2];
    expect(foundIn(await judged([...lines, ...step(0, 'cancel', 2, 30)]))).toEqual({});
    expect(foundIn(await judged(lines))).toEqual({ miscounted: 1 });
  });

  it('may by its deadline', async () => {
    const deadline = at(0, 'producer-2', { does: 'open', request: 'r', limit: 2, deadlineMs: 20 });
    expect(foundIn(await judged([deadline, ...begun, ...allRan.slice(0, 4), ...told2]))).toEqual(
      {},
    );
  });

  it('has no zombies in handlers whose signal it aborted', async () => {
    const deaf = [...ran('worker-1', 'r', 0, [10, 900]), ...ran('worker-1', 'r', 1, [10, 15])];
    const stop = at(50, 'worker-1', { did: 'abort', request: 'r', index: 0 });
    const lines = [...begun, ...deaf, stop, ...told2];
    const verdict = await judged([...lines, ...step(0, 'cancel', 2, 30, 40)]);
    expect(foundIn(verdict)).toEqual({});
    expect(verdict.cap.zombieRuns).toBe(0);
    // Told before anybody had ended it, it lost its lease.
    const lost = await judged([...lines, ...step(0, 'cancel', 2, 300, 310)]);
    expect(lost.cap.zombieRuns).toBe(1);
  });
});

describe('a request that was dropped while a producer still submitted it', () => {
  const first = [
    ...begun.slice(0, 2),
    ...submitted('r', 4, 2),
    ...step(0, 'limit', 1, 2, 3),
    ...allRan.slice(0, 4),
    ...told('r', countsOf(2, 0, 2), { ms: 50 }),
    at(5, 'waiter', { does: 'control', request: 'r', step: 2, act: 'cancel', limit: 1 }),
    ...step(1, 'drop', 1, 60, 70),
  ];
  const again = [
    ...submitted('r', 4, 2, 80).map((line) =>
      'generation' in line.event ? { ...line, event: { ...line.event, generation: 9 } } : line,
    ),
    ...[0, 1, 2, 3].flatMap((n) => ran('worker-2', 'r', n, [90 + 10 * n, 105 + 10 * n])),
    at(1_200, 'observer', { did: 'inspect', request: 'r', generation: 9, counts } as const),
    ...ended('r', counts).slice(1),
  ] as Line[];

  it('has a second life, with counts of its own and the limit that it was submitted with', async () => {
    expect(foundIn(await judged([...first, ...again]))).toEqual({});
  });

  it('has no second life without a producer', async () => {
    const lines = again.filter(({ process }) => process !== 'producer');
    const found = foundIn(await judged([...first, ...lines, ...ended('r', counts).slice(1)]));
    expect(found).toEqual({ miscounted: 1, 'completed twice': 1 });
  });

  it('has no more at once than that limit', async () => {
    const three = [0, 1, 2].flatMap((n) => ran('worker-2', 'r', n, [200, 210]));
    expect(foundIn(await judged([...first, ...again, ...three]))).toEqual({ 'cap exceeded': 1 });
  });
});

describe('a request that was dropped half-way', () => {
  const dropped = [...begun, ...allRan.slice(0, 4), ...step(0, 'drop', 2, 60, 70)];
  const end = ended('r', counts).slice(1);

  it('need not complete, and is not found afterwards', async () => {
    const gone = at(80, 'waiter', {
      failed: 'await',
      request: 'r',
      code: 'NOT_FOUND',
      message: '',
    });
    expect(foundIn(await judged([...dropped, gone, ...end]))).toEqual({});
  });

  it('leaves no key', async () => {
    const lines = [...dropped, ...end.slice(0, -1)];
    const left = at(1_500, 'observer', { did: 'look for keys', left: ['sub:{r}'] });
    expect(foundIn(await judged([...lines, left]))).toEqual({ 'key left': 1 });
  });

  it('is reported as complete to no waiter that began after it', async () => {
    const late = told('r', countsOf(2, 0), { ms: 1_000 });
    const lines = [...begun, ...allRan, ...step(0, 'drop', 2, 60, 70), ...end];
    const before = told('r', counts, { ms: 950 });
    expect(foundIn(await judged([...lines, ...before]))).toEqual({});
    const since = late.map((line) => ({ ...line, ms: line.ms + 500 }));
    expect(foundIn(await judged([...lines, ...since]))).toHaveProperty('completed twice');
  });
});

describe('a request that was redriven', () => {
  const half = countsOf(3, 1);
  const first = [
    ...[...begun, ...allRan.slice(0, 6), ...ran('worker-1', 'r', 3, [40, 45], 'failed')],
    ...told('r', half, { ms: 1_000 }),
    wasRead('r', [value(0), value(1), value(2), { index: 3, status: 'failed', item: null }], half),
  ];
  const again = ran('worker-2', 'r', 3, [1_210, 1_215]);
  const redrive = step(0, 'redrive', 2, 1_200, 1_205);
  const second = (read = [0, 1, 2, 3], after = 8, generation = 8): Line[] => [
    at(1_220, 'waiter', { does: 'await', request: 'r', after }),
    at(1_230, 'waiter', {
      ...{ did: 'await', request: 'r', ...outcomeOf(counts, generation) },
      ...{ notices: true, latencyMs: 5 },
    }),
    at(1_240, 'waiter', {
      ...{ did: 'read', request: 'r', generation, over: true },
      outcome: outcomeOf(counts, generation),
      results: read.map((index) => value(index)),
    }),
    at(1_250, 'observer', { did: 'inspect', request: 'r', generation, counts }),
    ...ended('r', counts).slice(1),
  ];

  it('completes as a second generation, each of whose results exists once', async () => {
    const verdict = await judged([...first, ...redrive, ...again, ...second()]);
    expect(foundIn(verdict)).toEqual({});
    expect(verdict.requests.generations).toEqual({ first: 1, later: 1 });
    expect(verdict.executions.repeats['after a redrive']).toBe(1);
    expect(verdict.acts).toEqual({ redrive: 1 });
  });

  it('may have runs of its first generation left, which are zombies once that is known to be complete', async () => {
    // Who had 0 and 1 before reported them after all.
    const heirs = [0, 1].flatMap((index) => ran('worker-1', 'r', index, [50, 1_212]));
    const lines = [...first, ...heirs, ...again, ...second()];
    const verdict = await judged([...lines, ...redrive]);
    expect(foundIn(verdict)).toEqual({});
    expect(verdict.cap).toMatchObject({ mostOver: 1, zombieRuns: 2, zombieWorkers: 1 });
    const early = step(0, 'redrive', 2, 900, 1_205);
    expect(foundIn(await judged([...lines, ...early]))).toEqual({ 'cap exceeded': 1 });
  });

  it('has no second generation that was not requested', async () => {
    const lines = [...first, ...again, ...second()];
    expect(foundIn(await judged(lines))).toEqual({ 'completed twice': 1 });
  });

  const sealed = (ms: number, generation: number, total = 4) =>
    at(ms, 'producer-2', { did: 'seal', request: 'r', generation, total });

  it.each<[what: string, found: object, lines: Line[]]>([
    [
      'is found in its second generation by a producer that submits it again',
      {},
      [sealed(1_232, 8)],
    ],
    ['is found there for good', {}, [sealed(1_232, 8), sealed(1_236, 8)]],
    ['is in no generation that no redrive began', { 'completed twice': 1 }, [sealed(1_232, 9)]],
    [
      'is not in its first generation again',
      { 'completed twice': 1 },
      [sealed(1_232, 8), sealed(1_236, 7)],
    ],
    ['has no more items than before', { 'completed twice': 1 }, [sealed(1_232, 8, 5)]],
  ])('%s', async (_what, found, lines) => {
    const all = [...first, ...redrive, ...again, ...second(), ...lines];
    expect(foundIn(await judged(all))).toEqual(found);
  });

  it('loses no result, and has none twice', async () => {
    const lines = [...first, ...redrive, ...again];
    expect(foundIn(await judged([...lines, ...second([0, 1, 2])]))).toEqual({ lost: 1 });
    const twice = await judged([...lines, ...second([0, 1, 2, 3, 3])]);
    expect(foundIn(twice)).toEqual({ 'counted twice': 1 });
  });

  describe('while the server loses writes', () => {
    const lost = (sure: number, gone: number) =>
      at(gone, 'nemesis', {
        ...{ did: 'lose writes', sureNs: String(sure * 1e6), goneNs: String(gone * 1e6) },
      });
    /** Somebody who waits since `ms` for the second life is told at `toldMs` that it is not there. */
    const refused = (ms: number, toldMs: number, code = 'LOST') => [
      at(ms, 'late', { does: 'await', request: 'r', after: 8 }),
      at(toldMs, 'late', { failed: 'await', request: 'r', code, message: '' }),
    ];
    const behind = second().map((line) => ({ ...line, ms: line.ms + 4_000 }));
    const anew = [...step(0, 'redrive', 2, 1_310, 1_320), ...again, ...behind];

    it.each<[what: string, found: object, lines: Line[]]>([
      ['is lost to who waited for it', {}, [lost(1_190, 1_210), ...refused(1_206, 1_300)]],
      [
        'is lost, was asked for anew, and that is heard of late',
        {},
        [lost(1_190, 1_210), ...refused(1_206, 2_300)],
      ],
      [
        'was acknowledged before, so it must not be lost',
        { lost: 1 },
        [lost(1_206, 1_210), ...refused(1_206, 1_300)],
      ],
      [
        'existed again for long, so it must not be lost',
        { lost: 1 },
        [lost(1_190, 1_210), ...refused(1_206, 3_400)],
      ],
      [
        'is not lost to a waiter that began since',
        { lost: 1 },
        [lost(1_190, 1_210), ...refused(1_211, 1_300)],
      ],
      [
        'is not lost to a waiter that learned of its completion before',
        { lost: 1 },
        [lost(1_190, 1_250), ...refused(1_206, 1_240)],
      ],
      [
        'keeps nothing of its first generation',
        { lost: 1 },
        [lost(1_190, 1_210), ...refused(1_206, 1_300, 'NOT_FOUND')],
      ],
    ])('%s', async (_what, found, lines) => {
      const all = [...first, ...redrive, ...lines, ...anew];
      expect(foundIn(await judged(all))).toEqual(found);
    });
  });

  it('does not report its first generation to a waiter for the second', async () => {
    const lines = [...first, ...redrive, ...again];
    expect(foundIn(await judged([...lines, ...second(undefined, 9)]))).toEqual({
      'completed twice': 1,
    });
  });
});
