import { describe, expect, it } from 'vitest';
import {
  at,
  countsOf,
  ended,
  foundIn,
  judged,
  type Line,
  ran,
  started,
  submitted,
  told,
  value,
  wasRead,
} from './journals.js';

const ns = (ms: number): string => String(ms * 1e6);
/** What was acknowledged between the two may be undone. */
const lost = (sure: number, gone: number): Line =>
  at(gone, 'nemesis', { did: 'lose writes', sureNs: ns(sure), goneNs: ns(gone) });
const stepped = (ms: number, offsetMs: number): Line =>
  at(ms, 'nemesis', { did: 'step clock', offsetMs });
const sealed = (ms: number, since: number, generation: number): Line =>
  at(ms, 'producer', {
    ...{ did: 'seal', request: 'r', generation, total: 3, sinceNs: ns(since) },
  });
const refused = (ms: number, code: string): Line =>
  at(ms, 'late', { failed: 'await', request: 'r', code, message: '' });

/** One request of three sub-requests, acknowledged at 1 ms and complete before 1,000 ms. */
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
const of = (word: string) => clean.filter(({ event }) => 'did' in event && event.did === word);
const but = (word: string) => clean.filter((line) => !of(word).includes(line));

const wordOf = (event: Line['event']): string => ('did' in event ? event.did : '');
/** The same, one of the three cancelled. */
const cancelled: readonly Line[] = [
  ...clean.filter(({ event }) => !['await', 'read', 'inspect'].includes(wordOf(event))),
  ...[...told('r', countsOf(2, 0, 1)), wasRead('r', [value(0), value(1)], countsOf(2, 0, 1))],
];

describe('when the server lost its last writes, the judge', () => {
  it.each<[what: string, found: object, lines: Line[]]>([
    ['finds nothing in a loss of which nobody noticed anything', {}, [...clean, lost(500, 510)]],
    [
      'excuses that a request is gone which was acknowledged meanwhile',
      {},
      [...clean, lost(0, 60), refused(100, 'NOT_FOUND')],
    ],
    [
      'misses a request that was acknowledged before',
      { lost: 1 },
      [...clean, lost(50, 60), refused(100, 'NOT_FOUND')],
    ],
    [
      'misses a request whose acknowledgement was asked for since',
      { lost: 1 },
      [...clean, lost(0, 60), sealed(90, 80, 7), refused(100, 'NOT_FOUND')],
    ],
    ...(
      [
        ['excuses that it is lost to who waited, submitted again under a smaller', {}, 2, 8],
        ['misses it if it was submitted again under a later', { lost: 1 }, 2, 6],
        ['misses it if the wait began since, submitted again under a smaller', { lost: 1 }, 60, 8],
      ] as const
    ).map(([what, found, beganMs, generation]): [string, object, Line[]] => [
      `${what} generation`,
      found,
      [
        ...but('seal'),
        at(beganMs, 'late', { does: 'await', request: 'r' }),
        ...[lost(0, 20), sealed(10, 5, generation), sealed(50, 30, 7), refused(100, 'LOST')],
      ],
    ]),
    [
      'excuses that a request which exists again is another generation',
      {},
      [...but('seal'), lost(0, 20), sealed(10, 5, 6), sealed(50, 30, 7)],
    ],
    [
      'finds two generations of a request that was acknowledged since',
      { 'completed twice': 1 },
      [...but('seal'), lost(0, 20), sealed(40, 30, 6), sealed(50, 41, 7)],
    ],
    [
      'excuses a waiter that learned of another end in between',
      {},
      [...clean, lost(500, 800), ...told('r', countsOf(2, 1), { process: 'early', ms: 790 })],
    ],
    [
      'excuses one that did so, and read the status only when the server was back',
      {},
      [
        ...clean.map((line) => ({ ...line, ms: line.ms + 9_000 })),
        lost(500, 800),
        ...told('r', countsOf(2, 1), { process: 'late', ms: 9_900, heardMs: 790 }),
      ],
    ],
    [
      'finds two ends that were both reported later',
      { 'completed twice': 1 },
      [
        ...clean.map((line) => ({ ...line, ms: line.ms + 9_000 })),
        ...[lost(500, 800), ...told('r', countsOf(2, 1), { process: 'late', ms: 9_900 })],
      ],
    ],
    [
      'finds a second result of one index in whatever was read',
      { 'counted twice': 1 },
      [
        ...but('read'),
        lost(500, 510),
        wasRead('r', [value(0), value(1), value(2), value(1)], countsOf(3)),
      ],
    ],
    [
      'finds a result that a live reader skipped',
      { lost: 1 },
      [...but('read'), lost(500, 510), wasRead('r', [value(0), value(2)], countsOf(3))],
    ],
    [
      'believes a reader that the request was cancelled after its completion had been lost',
      {},
      [
        ...clean.filter(({ event }) => !['read', 'inspect'].includes(wordOf(event))),
        ...[lost(990, 1_010), wasRead('r', [value(0), value(2)], countsOf(2, 0, 1))],
        at(1_020, 'producer', { does: 'control', request: 'r', step: 0, act: 'cancel', limit: 2 }),
      ],
    ],
    [
      'knows that a reader was told at its end what it had heard before the loss',
      {},
      [
        ...but('read'),
        ...[
          lost(950, 1_500),
          wasRead('r', [value(0), value(1), value(2)], countsOf(3), { ms: 9_000 }),
        ],
        ...told('r', countsOf(2, 1), { process: 'late', ms: 9_500 }),
      ].filter(({ event }) => wordOf(event) !== 'inspect'),
    ],
    [
      'finds a reader to whom the request ended in another way than to a waiter',
      { 'completed twice': 1, miscounted: 1 },
      [...but('read'), wasRead('r', [value(0), value(1), value(2)], countsOf(2, 1))],
    ],
    [
      'finds a waiter to whom a lost request was reported as ended',
      { 'told as completed': 1 },
      [...clean, lost(0, 60), refused(100, 'EXPIRED')],
    ],
    [
      'doubts what runs above the limit for a lease and a half',
      {},
      [...clean, lost(25, 27), ...ran('worker-2', 'r', 0, [28, 50]), started('worker-2')],
    ],
    [
      'finds what runs above the limit later',
      { 'cap exceeded': 1 },
      [
        ...clean.map((line) => ({ ...line, ms: line.ms + 9_000 })),
        ...[lost(25, 27), ...ran('worker-2', 'r', 0, [9_022, 9_050]), started('worker-2')],
      ],
    ],
  ])('%s', async (_what, found, lines) => {
    expect(foundIn(await judged(lines))).toEqual(found);
  });

  it('counts what is in doubt, and why something ran again', async () => {
    const verdict = await judged([
      ...[...clean, lost(0, 45)],
      ...ran('worker-1', 'r', 0, [50, 60]),
    ]);
    expect(foundIn(verdict)).toEqual({});
    expect(verdict.upheavals).toEqual({ lost: 1, inDoubt: 2, steps: 0 });
    expect(verdict.executions.repeats['after lost writes']).toBe(1);
  });
});

describe('when the clock of the server was stepped, the judge', () => {
  it('doubts the cap for a lease and a half, and nothing else', async () => {
    const lines = [...clean, stepped(15, 3_600_000)];
    const again = [...ran('worker-2', 'r', 0, [16, 50]), started('worker-2')];
    const verdict = await judged([...lines, ...again]);
    expect(foundIn(verdict)).toEqual({});
    expect(verdict.cap.doubtfulPeriods).toBe(1);
    expect(foundIn(await judged([...lines, refused(100, 'NOT_FOUND')]))).toEqual({ lost: 1 });
  });

  it('finds a request that was cancelled and nobody asked for it', async () => {
    expect(foundIn(await judged([...cancelled, stepped(15, 60_000)]))).toEqual({ miscounted: 1 });
  });
});

describe('of a request that was cancelled as nobody seemed to add to it, the judge', () => {
  const opened = at(0, 'producer', { does: 'open', request: 'r', limit: 2, leaseMs: 400 });
  const killed = at(100, 'nemesis', { does: 'fault', fault: 'kill producer', target: 'producer' });
  const next = (ms: number) =>
    at(ms, 'producer-2', { does: 'open', request: 'r', limit: 2, leaseMs: 400 });

  it.each<[what: string, found: object, lines: Line[]]>([
    ['believes that its producer was dead for too long', {}, [opened, killed, next(350)]],
    ['finds that its producer was alive', { miscounted: 1 }, [opened]],
    ['finds that another came in time', { miscounted: 1 }, [opened, killed, next(150)]],
    [
      'believes that a second upheaval had no second grace',
      {},
      [opened, killed, stepped(110, 60_000), stepped(130, 0), next(150)],
    ],
    [
      'knows that one upheaval has its grace',
      { miscounted: 1 },
      [opened, killed, stepped(110, 60_000), next(150)],
    ],
  ])('%s', async (_what, found, lines) => {
    expect(foundIn(await judged([...cancelled, ...lines]))).toEqual(found);
  });
});
