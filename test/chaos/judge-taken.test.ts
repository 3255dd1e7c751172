import { expect, it } from 'vitest';
import type { Taken } from '../../tools/chaos/src/contract/history.js';
import { at, foundIn, judged, type Line } from './journals.js';

/** The last entries of a run without requests. */
const over: readonly Line[] = [
  at(90_000, 'observer', { does: 'drain', open: 0 }),
  at(90_100, 'observer', { did: 'drain' }),
  at(90_200, 'observer', { did: 'look for keys', left: [] }),
];

const put = (ms: number, key = 'k', queue: Taken = 'ids'): Line[] => [
  at(ms, 'a', { does: 'put', queue, key }),
  at(ms + 2, 'a', { did: 'put', queue, key, sinceNs: String(ms * 1e6) }),
];

/** By the server's clock from then on, for two seconds. */
const taken = (ms: number, process: string, { key = 'k', queue = 'ids' as Taken } = {}): Line =>
  at(ms, process, { did: 'take', queue, key, atMs: 1_000_000 + ms, holdMs: 2_000 });

const done = (
  ms: number,
  process: string,
  { key = 'k', queue = 'ids' as Taken, counted = true } = {},
): Line[] => [
  at(ms, process, { does: 'end', queue, key }),
  at(ms + 1, process, { did: 'end', queue, key, counted }),
];

const lost = (sure: number, gone: number): Line =>
  at(gone, 'nemesis', {
    ...{ did: 'lose writes', sureNs: String(sure * 1e6), goneNs: String(gone * 1e6) },
  });
const stepped = (ms: number): Line => at(ms, 'nemesis', { did: 'step clock', offsetMs: 60_000 });

/** A delayed one whose answer nobody heard, and what is left of it. */
const half = (...more: Line[]): Line[] => [
  at(10, 'a', { does: 'put', queue: 'delayed', key: 'k' }),
  at(900, 'nemesis', { does: 'fault', fault: 'kill taker', target: 'a' }),
  at(910, 'nemesis', { did: 'fault', fault: 'kill taker', target: 'a' }),
  ...more,
  at(90_300, 'observer', { did: 'look for keys', left: ['sub:{k}', 'request:{k}'] }),
];

const delayed = { queue: 'delayed' } as const;
/** A delayed task is taken, and its end is answered. */
const ran = (ms: number, process: string): Line[] => [
  taken(ms, process, delayed),
  ...done(ms + 1, process, delayed),
];

const whole = [...put(10), taken(20, 'a'), ...done(30, 'a')];

it.each<[what: string, found: object, lines: Line[]]>([
  ['a key that was put, taken and done', {}, whole],
  ['a key that nobody ever took', { lost: 1 }, put(10)],
  [
    'a delay of a clock that went back since, which never came',
    { lost: 1 },
    [
      stepped(5),
      ...put(10, 'k', 'retry'),
      at(5_000, 'nemesis', { did: 'step clock', offsetMs: 0 }),
    ],
  ],
  ['a key that was left lying and not offered again', { lost: 1 }, [...put(10), taken(20, 'a')]],
  [
    'a key that was left lying and done by another',
    {},
    [...put(10), taken(20, 'a'), taken(2_100, 'b'), ...done(2_110, 'b')],
  ],
  ['half a submission of which the server lost the other half', {}, half(lost(400, 500))],
  [
    'half a submission of which the server lost nothing',
    { 'key left': 2 },
    half(lost(1_400, 1_500)),
  ],
  [
    'what is left of a submission that was acknowledged',
    { 'key left': 2, lost: 1 },
    half(
      at(300, 'a', { did: 'put', queue: 'delayed', key: 'k', sinceNs: '10000000' }),
      lost(400, 500),
    ),
  ],
  ['a key that nobody put', { unexpected: 1 }, [taken(20, 'a'), ...done(30, 'a')]],
  [
    'a key in two hands at once',
    { 'in two hands': 1 },
    [...put(10), taken(20, 'a'), taken(30, 'b'), ...done(40, 'b')],
  ],
  [
    'a task that runs beside a zombie of itself',
    {},
    [
      ...put(10, 'k', 'delayed'),
      ...[taken(20, 'a', { queue: 'delayed' }), taken(30, 'b', { queue: 'delayed' })],
      ...[...done(40, 'a', { queue: 'delayed' }), ...done(41, 'b', { queue: 'delayed' })],
    ],
  ],
  [
    'an end that counted twice',
    { 'counted twice': 1 },
    [...whole, taken(2_100, 'b'), ...done(2_110, 'b')],
  ],
  [
    'an end that did not count, as another was first',
    {},
    [...whole, taken(2_100, 'b'), ...done(2_110, 'b', { counted: false })],
  ],
  ['a key that came back long after its end', { 'came back': 1 }, [...whole, taken(9_000, 'b')]],
  ['a key that was acknowledged while it got lost', {}, [...put(10), lost(5, 20)]],
  ['a key that was acknowledged before, and is gone', { lost: 1 }, [...put(10), lost(15, 20)]],
  ['a key that was acknowledged since, and is gone', { lost: 1 }, [...put(30), lost(5, 20)]],
  [
    'an end that was undone, and counts again',
    {},
    [...whole, lost(25, 40), taken(50, 'b'), ...done(60, 'b')],
  ],
  [
    'an end that stood, and counts again',
    { 'counted twice': 1 },
    [...whole, lost(35, 40), taken(2_100, 'b'), ...done(2_110, 'b')],
  ],
  [
    'two hands whose time was measured by two clocks',
    {},
    [...put(10), taken(20, 'a'), stepped(25), taken(30, 'b'), ...done(40, 'b')],
  ],
  [
    'two hands, of which the server lost the first, heard of a little later',
    {},
    [...put(10), lost(15, 25), taken(30, 'a'), taken(40, 'b'), ...done(50, 'b')],
  ],
  [
    'two hands long after a loss',
    { 'in two hands': 1 },
    [...put(10), lost(15, 25), taken(3_000, 'a'), taken(3_010, 'b'), ...done(3_020, 'b')],
  ],
  [
    'a task that ended and was forgotten while its put was still asked for',
    {},
    [
      at(10, 'a', { does: 'put', queue: 'delayed', key: 'k' }),
      ...[taken(20, 'b', { queue: 'delayed' }), ...done(30, 'b', { queue: 'delayed' })],
      at(8_000, 'a', { did: 'put', queue: 'delayed', key: 'k', sinceNs: String(7_990 * 1e6) }),
      ...[taken(9_000, 'a', { queue: 'delayed' }), ...done(9_010, 'a', { queue: 'delayed' })],
    ],
  ],
  [
    'a task that came back, as the server lost the take of which its process heard a little later',
    {},
    [...put(5, 'k', 'delayed'), lost(15, 25), ...ran(30, 'a'), ...ran(9_000, 'b')],
  ],
  [
    'the same, and it came back after its second end too',
    { 'came back': 1 },
    [
      ...put(5, 'k', 'delayed'),
      lost(15, 25),
      ...ran(30, 'a'),
      ...ran(9_000, 'b'),
      ...ran(18_000, 'a'),
    ],
  ],
  [
    'a task that came back, and whose take was acknowledged before the loss',
    { 'came back': 1 },
    [
      ...put(5, 'k', 'delayed'),
      taken(10, 'a', delayed),
      lost(15, 25),
      ...done(30, 'a', delayed),
      ...ran(9_000, 'b'),
    ],
  ],
  [
    'a task that came back, and that was taken long after the loss',
    { 'came back': 1 },
    [...put(5, 'k', 'delayed'), lost(15, 25), ...ran(3_000, 'a'), ...ran(12_000, 'b')],
  ],
])('%s', async (_what, found, lines) => {
  expect(foundIn(await judged([...lines, ...over]))).toEqual(found);
});
