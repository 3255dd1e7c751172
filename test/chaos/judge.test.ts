import { describe, expect, it } from 'vitest';
import {
  at,
  countsOf,
  ended,
  foundIn,
  judged,
  type Line,
  NO_COUNTS,
  ran,
  started,
  submitted,
  told,
  value,
  wasRead,
} from './journals.js';

/** One request of three sub-requests, limit 2, as it should be; a test leaves out or adds. */
const clean: readonly Line[] = [
  started('worker-1'),
  ...submitted('r', 3, 2),
  ...ran('worker-1', 'r', 0, [10, 20]),
  ...ran('worker-1', 'r', 1, [10, 30]),
  ...ran('worker-1', 'r', 2, [20, 40]),
  ...told('r', countsOf(3)),
  wasRead('r', [value(0), value(1), value(2)], countsOf(3)),
  ...ended('r', countsOf(3)),
];

const without = (leftOut: (event: Line['event']) => boolean): Line[] =>
  clean.filter(({ event }) => !leftOut(event));
const did = (word: string) => (event: Line['event']) => 'did' in event && event.did === word;
const freeze = (from: number, to: number): Line[] => [
  at(from, 'nemesis', { does: 'fault', fault: 'freeze worker', target: 'worker-1' }),
  at(to, 'nemesis', { did: 'fault', fault: 'freeze worker', target: 'worker-1' }),
];
const kill = (ms: number, target: string): Line[] => [
  at(ms, 'nemesis', { does: 'fault', fault: 'kill worker', target }),
  at(ms + 1, 'nemesis', { did: 'fault', fault: 'kill worker', target }),
];

describe('of what a run wrote down, the judge', () => {
  it('finds nothing wrong in a run as it should be', async () => {
    const verdict = await judged(clean);
    expect(foundIn(verdict)).toEqual({});
    expect(verdict.clean).toBe(true);
    expect(verdict.items).toMatchObject({ attempted: 3, acknowledged: 3, settled: 3, read: 3 });
    expect(verdict.executions).toMatchObject({ starts: 3, again: 0 });
    expect(verdict.samples.noticeMs).toEqual([5]);
  });

  it.each<[what: string, found: object, lines: Line[]]>([
    [
      'a result that is not there',
      { lost: 1 },
      [...without(did('read')), wasRead('r', [value(0), value(2)], countsOf(3))],
    ],
    [
      'what was settled and never ran',
      { lost: 1 },
      without((event) => 'index' in event && event.index === 1),
    ],
    [
      'an acknowledged request that is not found',
      { lost: 1 },
      [
        ...clean,
        at(900, 'late', { failed: 'await', request: 'r', code: 'NOT_FOUND', message: '' }),
      ],
    ],
    [
      'a result of an index that nobody added',
      { unexpected: 1 },
      [
        ...without(did('read')),
        wasRead('r', [value(0), value(1), value(2), value(3)], countsOf(3)),
      ],
    ],
    [
      'a value that is not its item',
      { unexpected: 1 },
      [...without(did('read')), wasRead('r', [value(0), value(1), value(2, 1)], countsOf(3))],
    ],
    [
      'a run of an index that nobody added',
      { unexpected: 1 },
      [...clean, ...ran('w', 'r', 3, [50, 60])],
    ],
    [
      'two results of one index',
      { 'counted twice': 1 },
      [
        ...without(did('read')),
        wasRead('r', [value(0), value(1), value(2), value(1)], countsOf(3)),
      ],
    ],
    [
      'counts that are not those of the results',
      { miscounted: 1 },
      [
        ...without((event) => did('await')(event) || did('read')(event)),
        ...told('r', countsOf(2, 1)),
        wasRead('r', [value(0), value(1), value(2)], countsOf(2, 1)),
        at(0, 'x', { does: 'await', request: 'r' }),
      ].filter(({ event }) => !did('inspect')(event)),
    ],
    [
      'counts on the server that do not add up',
      { miscounted: 1 },
      [
        ...without(did('inspect')),
        at(1_200, 'observer', {
          ...{ did: 'inspect', request: 'r', generation: 7 },
          counts: { ...countsOf(3), total: 4 },
        }),
      ],
    ],
    [
      'two waiters that received two generations',
      { 'completed twice': 1 },
      [...clean, ...told('r', countsOf(3), { process: 'late', generation: 8 })],
    ],
    [
      'two waiters that received two outcomes',
      { 'completed twice': 1 },
      [...clean, ...told('r', countsOf(2, 1), { process: 'late' })],
    ],
    [
      'a request that never completed',
      { 'never completed': 1 },
      [...clean, ...submitted('other', 3, 2)],
    ],
    [
      'a key that is left',
      { 'key left': 1 },
      [
        ...without(did('look for keys')),
        at(1_500, 'observer', { did: 'look for keys', left: ['k'] }),
      ],
    ],
    ['a run that was not drained', { 'cut short': 1 }, without(did('drain'))],
    ['keys that nobody checked', { 'cut short': 1 }, without(did('look for keys'))],
    ['results that nobody read', { 'cut short': 1 }, without(did('read'))],
  ])('finds %s, and nothing else', async (_, found, lines) => {
    const verdict = await judged(lines);
    expect(foundIn(verdict)).toEqual(found);
    expect(verdict.clean).toBe(false);
  });

  it('asks for nothing that was not acknowledged', async () => {
    const other = { request: 'other', from: 0, to: 3 };
    const lines = [
      ...clean,
      at(5, 'producer-2', { does: 'open', request: 'other', limit: 2 }),
      at(6, 'producer-2', { does: 'append', ...other }),
    ];
    expect(foundIn(await judged(lines))).toEqual({});
  });

  it('lets as many results be missing as were cancelled', async () => {
    const lines = (cancelled: number): Line[] => [
      ...without((event) => ['await', 'read', 'inspect'].some((word) => did(word)(event))),
      at(5, 'waiter', {
        ...{ does: 'control', request: 'r', step: 0, act: 'cancel', limit: 2 },
      }),
      ...told('r', countsOf(3 - cancelled, 0, cancelled)),
      wasRead('r', [value(0)], countsOf(3 - cancelled, 0, cancelled)),
    ];
    expect(foundIn(await judged(lines(2)))).toEqual({});
    expect(foundIn(await judged(lines(1)))).toEqual({ lost: 1 });
  });

  it('takes an empty request for complete', async () => {
    const lines = [
      ...clean,
      ...submitted('none', 0, 2),
      ...told('none', NO_COUNTS),
      wasRead('none', [], NO_COUNTS),
    ];
    expect(foundIn(await judged(lines))).toEqual({});
  });
});

describe('a journal whose last line is torn', () => {
  it('is that of a process that was killed', async () => {
    const tails = { 'worker-1': '{"ns":"50000000","proc' };
    expect(foundIn(await judged([...clean, ...kill(60, 'worker-1')], tails))).toEqual({});
    expect(foundIn(await judged(clean, tails))).toEqual({ 'torn journal': 1 });
  });

  it('is not believed when it is torn elsewhere', async () => {
    const tails = { 'worker-1': '{"ns":"50000\n{"ns":"60000' };
    await expect(judged([...clean, ...kill(60, 'worker-1')], tails)).rejects.toThrow(
      'worker-1.ndjson, line 8',
    );
  });

  it('is whole when only its line feed is missing', async () => {
    const line = JSON.stringify({ ns: '60000000', process: 'worker-1', event: { does: 'x' } });
    await expect(judged(clean, { 'worker-1': line })).rejects.toThrow('unknown entry');
  });
});

describe('more in flight than the limit', () => {
  /** Another three of the same request; they are repeats, which is no violation. */
  const again = (from: number, to: number): Line[] =>
    [0, 1].flatMap((index) => ran('worker-2', 'r', index, [from, to]));
  const long = (to: number, how: 'succeeded' | 'aborted' = 'succeeded'): Line[] => [
    ...clean,
    started('worker-2'),
    ...ran('worker-1', 'r', 2, [100, to], how),
  ];

  it('is found, however short', async () => {
    const verdict = await judged([...long(400), ...again(300, 300.01)]);
    expect(foundIn(verdict)).toEqual({ 'cap exceeded': 1 });
    expect(verdict.findings['cap exceeded'].examples[0]).toContain('3 of 2');
    expect(verdict.cap).toMatchObject({ mostOver: 1, zombieRuns: 0 });
  });

  it('is not there when one ends as the other begins', async () => {
    expect(foundIn(await judged([...long(300), ...again(300, 400)]))).toEqual({});
  });

  it('is marked apart when it is with a worker that stood still for its lease', async () => {
    const verdict = await judged([...long(4_000), ...freeze(150, 3_900), ...again(2_200, 2_300)]);
    expect(foundIn(verdict)).toEqual({});
    expect(verdict.cap).toMatchObject({ mostOver: 1, zombieRuns: 1, zombieWorkers: 1 });
    expect(verdict.cap.zombieSeconds).toBeCloseTo(1.85);
    expect(verdict.cap.zombieAwakeSeconds).toBeCloseTo(0.1);
    expect(verdict.cap.overSeconds).toBeCloseTo(0.1);
    expect(verdict.cap.doubtfulPeriods).toBe(0);
    expect(verdict.executions.repeats['beside a zombie']).toBeGreaterThan(0);
  });

  it('is doubtful when its lease may have been over', async () => {
    const verdict = await judged([...long(4_000), ...freeze(150, 3_900), ...again(2_000, 2_100)]);
    expect(foundIn(verdict)).toEqual({});
    expect(verdict.cap).toMatchObject({ mostOver: 1, doubtfulPeriods: 1 });
    expect(verdict.cap.doubtfulSeconds).toBeCloseTo(0.1);
  });

  it('is found when its lease cannot have been over', async () => {
    const lines = [...long(4_000), ...freeze(150, 3_900), ...again(1_500, 1_700)];
    expect(foundIn(await judged(lines))).toEqual({ 'cap exceeded': 1 });
  });

  it('is found when it stood still for less than its lease, and went on before', async () => {
    const lines = [...long(4_000), ...freeze(150, 1_000), ...again(1_500, 1_700)];
    expect(foundIn(await judged(lines))).toEqual({ 'cap exceeded': 1 });
  });

  it('is doubtful when its worker says that it stood still for its lease, unasked', async () => {
    const still = (forMs: number) => at(3_900, 'worker-1', { did: 'stand still', forMs });
    const lines = [...long(4_000), ...again(2_200, 2_300)];
    const verdict = await judged([...lines, still(3_750)]);
    expect(foundIn(verdict)).toEqual({});
    expect(verdict.cap).toMatchObject({ mostOver: 1, doubtfulPeriods: 1, zombieRuns: 0 });
    expect(verdict.executions.repeats['beside a zombie']).toBeGreaterThan(0);
    expect(foundIn(await judged([...lines, still(1_500)]))).toEqual({ 'cap exceeded': 1 });
    // Of one that was frozen it says nothing new.
    const frozen = await judged([...lines, ...freeze(150, 3_900), still(3_800)]);
    expect(frozen.cap).toMatchObject({ zombieRuns: 1, zombieWorkers: 1 });
    expect(frozen.cap.zombieAwakeSeconds).toBeCloseTo(0.1);
  });

  it('is found when a zombie begins something new', async () => {
    const lines = [
      ...long(4_000),
      ...freeze(150, 3_900),
      ...ran('worker-1', 'r', 0, [3_950, 3_990]),
      ...again(3_940, 3_995),
    ];
    expect(foundIn(await judged(lines))).toEqual({ 'cap exceeded': 1 });
  });

  it('is marked apart when its worker was cut off for its lease', async () => {
    const hole = { fault: 'black hole', target: 'worker-1' } as const;
    const lines = [
      ...[...long(4_000), ...again(2_200, 2_300)],
      ...[
        at(150, 'nemesis', { does: 'fault', ...hole }),
        at(3_900, 'nemesis', { did: 'fault', ...hole }),
      ],
    ];
    const verdict = await judged(lines);
    expect(foundIn(verdict)).toEqual({});
    expect(verdict.cap).toMatchObject({ mostOver: 1, zombieRuns: 1 });
  });

  it('is marked separately in a handler that continues after its signal aborted', async () => {
    const told = (ms: number) => at(ms, 'worker-1', { did: 'abort', request: 'r', index: 2 });
    const deaf = [...long(4_000), told(1_800)];
    const doubtful = await judged([...deaf, ...again(1_850, 1_950)]);
    expect(foundIn(doubtful)).toEqual({});
    expect(doubtful.cap).toMatchObject({ mostOver: 1, doubtfulPeriods: 1, zombieRuns: 1 });
    const zombie = await judged([...deaf, ...again(2_100, 2_200)]);
    expect(foundIn(zombie)).toEqual({});
    expect(zombie.cap).toMatchObject({ mostOver: 1, doubtfulPeriods: 0, zombieRuns: 1 });
    const before = await judged([...deaf, ...again(1_700, 1_750)]);
    expect(foundIn(before)).toEqual({ 'cap exceeded': 1 });
  });

  it('is not there when the worker was killed', async () => {
    const dead = [...clean, started('worker-2'), ...ran('worker-1', 'r', 2, [100])];
    const lines = [...dead, ...kill(200, 'worker-1')];
    const verdict = await judged([...lines, ...again(2_300, 2_400)]);
    expect(foundIn(verdict)).toEqual({});
    expect(verdict.faults).toEqual({ 'kill worker': 1 });
    expect(foundIn(await judged([...lines, ...again(200.5, 300)]))).toEqual({ 'cap exceeded': 1 });
  });
});

describe('what is measured', () => {
  it('is the time from the kill of a worker to the next start of what it ran', async () => {
    const lines = [
      ...[
        ...clean,
        started('worker-2'),
        ...ran('worker-1', 'r', 2, [100]),
        ...kill(200, 'worker-1'),
      ],
      ...ran('worker-2', 'r', 2, [2_700, 2_750]),
    ];
    const { samples, executions } = await judged(lines);
    expect(samples.recoveryMs).toEqual([2_500]);
    expect(executions.again).toBe(1);
    expect(executions.repeats['after a kill']).toBe(1);
  });

  it('tells a retry from a repeat', async () => {
    const lines = [
      ...[...clean, ...ran('worker-1', 'r', 0, [100, 110], 'failed')],
      ...ran('worker-1', 'r', 0, [120, 130], 'succeeded', 2),
    ];
    const { executions } = await judged(lines);
    expect(executions.repeats).toMatchObject({ 'after a failure': 1, 'for other reasons': 1 });
  });

  it('is no notice when the waiter came after the completion', async () => {
    const late = [
      at(2_000, 'late', { does: 'await', request: 'r' }),
      at(2_010, 'late', {
        ...{ did: 'await', request: 'r', generation: 7, status: 'succeeded' },
        ...{ counts: countsOf(3), notices: false, latencyMs: 1_005 },
      }),
    ] satisfies Line[];
    const { samples, requests } = await judged([...clean, ...late]);
    expect(requests.told).toBe(2);
    expect(samples).toMatchObject({ noticeMs: [5], withoutNoticeMs: [] });
  });

  it('is how long the drain took', async () => {
    expect((await judged(clean)).durations.drainMs).toBeCloseTo(150);
  });
});
