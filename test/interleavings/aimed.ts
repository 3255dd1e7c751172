import { type Aim, LATE } from './aims.js';

/*
 * What has to come together for a cure to be missed, where chance would hardly bring it about. Each is
 * tried with the cure switched off; with it, all of them go well.
 */

interface Course {
  readonly world: string;
  readonly aims: readonly Aim[];
}

/** At a cure of the scripts: the name of its history of test/lua, and which of its mutations. */
interface Aimed extends Course {
  readonly history: string;
  readonly parts: readonly number[];
}

/** At a cure of the code, by its name. */
interface AimedAtCode extends Course {
  readonly cure: string;
}

const ticks = ['w1 tick', 'w1 tend'];

/** Scripts that drain, where one of them comes when Redis is full. */
const full = [
  ['enter', 'one worker, one sub-request', 'w1 enter'],
  ['take', 'long work of one worker', 'w1 take'],
  ['settle', 'one worker, one sub-request', 'w1 settle'],
  ['renew', 'long work', 'w1 renew'],
  ['exchange', 'long work', 'w1 exchange'],
  ['push', 'two requests take turns', 'w1 push'],
  ['renew-producer', 'appended with long pauses', 'p renew-producer'],
  ['schedule-tend', 'long work, cancelled', 'c schedule-tend'],
  ['tick', 'long work', 'w1 tick'],
  ['tend', 'long work', 'w1 tend'],
  ['write-back', 'long work', 'w1 write-back'],
  ['park', 'one who does not serve the task', 'w1 park'],
  ['deregister', 'long work, cancelled', 'w1 deregister'],
  ['seal', 'a producer and a worker', 'p seal'],
  ['cancel', 'long work, cancelled', 'c cancel'],
  ['finish', 'one worker, one sub-request', 'w1 finish'],
  ['drop', 'dropped and used again', 'd drop'],
] as const;

export const aimed: readonly Aimed[] = [
  { history: 'D2', parts: [1], world: 'two requests take turns', aims: [] },
  {
    history: 'D3',
    parts: [1],
    world: 'long work',
    aims: [{ step: 'w1 ends a 1' }, { step: 'w1 settle', fault: 'ends, much later' }],
  },
  {
    history: 'D4',
    parts: [1],
    world: 'long work',
    aims: [{ step: 'w1 renew', fault: 'stands still' }],
  },
  {
    history: 'D5',
    parts: [1],
    world: 'a long one among short ones',
    aims: [{ step: 'w1 settle', fault: 'sent again' }],
  },
  {
    history: 'together, of one hold',
    parts: [1],
    world: 'a slot to spare',
    aims: [
      { step: 'w1 renew', fault: 'stands still' },
      { step: 'w2 take' },
      // It comes back with a new hold; what it ran under the old one ends together, one of it settled.
      { step: 'w1 enter', hold: ['w1 ends'] },
      { step: 'w2 ends a 0', hold: ['w1 ends', 'w1 take', 'w2 ends a 1'] },
      { step: 'w2 settle', hold: ['w1 ends', 'w1 take', 'w2 ends a 1'] },
      { step: 'w1 ends a 0', hold: ['w1 take', 'w2 ends a 1'] },
      { step: 'w1 ends a 1', hold: ['w1 take', 'w2 ends a 1'] },
      { step: 'w1 settle', hold: ['w2 ends a 1'] },
    ],
  },
  {
    history: 'D6',
    parts: [1],
    world: 'a producer and a worker',
    aims: [{ step: 'p create', fault: 'ends, much later' }],
  },
  {
    history: 'P6',
    parts: [1],
    world: 'an id that is retained',
    aims: [{ step: 'p create', fault: 'ends, much later' }],
  },
  {
    history: 'P7',
    parts: [1],
    world: 'two ask for a retained id',
    aims: [
      { step: 'p intent' },
      { step: 'r intent', hold: ['p create'] },
      { step: 'r create', nth: 2, hold: ['p create'] },
      { step: 'd comes', hold: ['p create', 'r finish'] },
      { step: 'd drop', hold: ['p create', 'r finish'] },
      { step: 'p create', hold: ['r finish'] },
    ],
  },
  {
    history: 'D7',
    parts: [1],
    world: 'dropped and used again',
    aims: [
      { step: 'd comes' },
      { step: 'd drop' },
      { step: 'd finish', fault: 'late' },
      // Refused with its items, then alone.
      { step: 'p create', nth: 3, hold: ['d finish'] },
      { step: 'd finish' },
    ],
  },
  {
    history: 'P1',
    parts: [1],
    world: 'a long one among short ones',
    aims: [
      { step: 'w1 settle', nth: 2, fault: 'late' },
      { step: 'w1 settle', nth: 2, hold: [LATE] },
    ],
  },
  {
    history: 'P2',
    parts: [1],
    world: 'appended with long pauses',
    aims: [{ step: 'w1 ends a 0' }, { step: 'w1 settle', nth: 2, fault: 'much later' }],
  },
  {
    history: 'P3',
    parts: [1],
    world: 'long work of one worker',
    aims: [{ step: 'w1 ends a 0' }, { step: 'w1 settle', fault: 'much later' }],
  },
  {
    history: 'P4',
    parts: [1],
    world: 'long work, cancelled',
    aims: [
      { step: 'w1 enter' },
      { step: 'c comes' },
      { step: 'c cancel' },
      { step: 'w1 is told to close' },
    ],
  },
  {
    history: 'P5',
    parts: [1],
    world: 'long work, cancelled',
    aims: [
      { step: 'w1 enter' },
      { step: 'c comes' },
      { step: 'c cancel' },
      { step: 'w1 tick', fault: 'ends before', hold: ['w1 is told'] },
    ],
  },
  {
    history: 'top-up, give-back',
    parts: [1],
    world: 'long work of one worker',
    aims: [
      { step: 'w1 renew', fault: 'stands still' },
      { step: 'w1 ends a 1', hold: ['w1 ends a 0', ...ticks] },
      { step: 'w1 settle', hold: ['w1 ends a 0', ...ticks] },
      { step: 'w1 ends a 0', hold: ticks },
      { step: 'w1 settle', hold: ticks },
    ],
  },
  {
    history: 'P8',
    parts: [1],
    world: 'long work of one worker',
    aims: [{ step: 'w1 renew', fault: 'ends before' }],
  },
  {
    history: 'partial loss',
    parts: [1],
    world: 'many turns of two',
    aims: [{ step: 'w1 enter' }, { step: 'w2 pop', fault: 'ends after' }],
  },
  {
    history: 'R14',
    parts: [1],
    world: 'appended with long pauses',
    aims: [{ step: 'w1 tend', fault: 'stands still' }],
  },
  {
    history: 'D9',
    parts: [2],
    world: 'long work',
    aims: [{ step: 'w1 renew', fault: 'ends before' }],
  },
  {
    history: 'D10',
    parts: [2],
    world: 'long work',
    aims: [],
  },
  {
    history: 'state before publish',
    parts: [1],
    world: 'one worker, one sub-request',
    aims: [{ step: 'w1 ends a 0' }, { step: 'w1 settle', fault: 'not published' }],
  },
  {
    history: 'producer lease, renewed',
    parts: [1],
    world: 'appended with long pauses',
    aims: [],
  },
  {
    history: 'producer lease, renewed',
    parts: [2],
    world: 'appended with long pauses',
    aims: [
      { step: 'p append', nth: 2 },
      { step: 'p renew-producer', fault: 'not sent' },
      { step: 'p renew-producer', fault: 'not sent' },
      { step: 'p renew-producer', fault: 'not sent' },
    ],
  },
  {
    history: 'P9',
    parts: [1, 2],
    world: 'met by one who does not serve it',
    aims: [],
  },
  {
    history: 'P10',
    parts: [1],
    world: 'long work and crashes',
    aims: [
      { step: 'w1 renew', fault: 'ends before' },
      { step: 'w2 take' },
      { step: 'w2 tick', fault: 'ends before' },
    ],
  },
  { history: 'P10', parts: [2, 3], world: 'one that ends its worker', aims: [] },
  {
    history: 'P11',
    parts: [1],
    world: 'one holds many',
    aims: [{ step: 'w1 ends', fault: 'ends before' }],
  },
  {
    history: 'P13',
    parts: [1],
    world: 'long work',
    aims: [
      { step: 'w1 renew', fault: 'Redis stands still' },
      { step: 'w2 tend', hold: ['w1 renew', 'w1 settle', 'w1 tend', 'w1 tick'] },
    ],
  },
  {
    history: 'P13',
    parts: [2],
    world: 'long work',
    aims: [
      { step: 'w1 renew', fault: 'Redis stands still' },
      { step: 'w2 tend', nth: 2, hold: ['w1 renew', 'w1 settle', 'w1 tend', 'w1 tick'] },
    ],
  },
  {
    history: 'P14',
    parts: [1],
    world: 'long work',
    aims: [
      { step: 'w1 renew', fault: 'ends before' },
      { step: 'w2 write-back', fault: 'Redis stands still', hold: ["w1'"] },
      { step: 'w2 tick', hold: ["w1'"] },
      { step: 'w2 write-back', fault: 'Redis stands still', hold: ["w1'"] },
      { step: 'w2 tick', hold: ["w1'"] },
      { step: 'w2 tend', hold: ["w1'"] },
    ],
  },
  {
    history: 'P15',
    parts: [1],
    world: 'two ask for a retained id',
    aims: [
      { step: 'r intent', fault: 'ends before' },
      { step: 'p intent' },
      { step: 'd finish', hold: ['p create'] },
      { step: 'p create', fault: 'ends before' },
    ],
  },
  {
    history: 'P15, again',
    parts: [1],
    world: 'two ask for a retained id',
    aims: [
      { step: 'r intent', fault: 'ends before' },
      { step: 'p intent' },
      { step: 'd drop', fault: 'ends after', hold: ['p create'] },
      { step: 'p create', fault: 'ends before' },
    ],
  },
  {
    history: 'P16',
    parts: [1],
    world: 'long work',
    aims: [{ step: 'w1 tick', nth: 9, fault: 'Redis stands still' }],
  },
  {
    history: 'P17',
    parts: [1, 2, 3],
    world: 'a short retention',
    aims: [{ step: 'p create', fault: 'much later' }],
  },
  {
    history: 'P18',
    parts: [1],
    world: 'dropped and used again',
    aims: [
      { step: 'd comes' },
      { step: 'd drop', fault: 'late' },
      { step: 'd finish', hold: [LATE] },
      { step: 'p seal', hold: [LATE] },
    ],
  },
  {
    history: 'full, run-alone',
    parts: [1],
    world: 'one that throws at last',
    aims: [
      { step: 'w1 renew', fault: 'ends before' },
      { step: 'w2 run-alone', fault: 'Redis is full' },
    ],
  },
  ...full.map(([script, world, step]): Aimed => {
    const aims: readonly Aim[] = [{ step, fault: 'Redis is full' }];
    return { history: `full, ${script}`, parts: [1], world, aims };
  }),
];

export const aimedAtCode: readonly AimedAtCode[] = [
  { cure: 'intent before create', world: 'a producer and a worker', aims: [] },
  { cure: 'leave before push', world: 'two requests take turns', aims: [] },
  {
    cure: 'give-back of unstarted reads',
    world: 'long work, cancelled',
    aims: [{ step: 'w1 enter' }, { step: 'w1 is told to close' }],
  },
  {
    cure: 'give-back of entries that a lost reply brought',
    world: 'long work',
    aims: [{ step: 'w1 settle', fault: 'reply lost' }],
  },
  {
    cure: 're-read after reconnect',
    world: 'one worker, one sub-request',
    aims: [{ step: 'n hears', fault: 'reply lost' }],
  },
  {
    cure: 'state re-read by the waiter, once it is subscribed',
    world: 'one worker, one sub-request',
    aims: [{ step: 'w1 finish', hold: ['n'] }],
  },
  {
    cure: 'state re-read by the waiter, from time to time',
    world: 'one worker, one sub-request',
    aims: [{ step: 'n hears', fault: 'not sent' }],
  },
  {
    cure: 'self-fencing',
    world: 'long work',
    aims: [{ step: 'w1 renew', fault: 'stands still' }],
  },
  {
    cure: 'a suspect runs in isolation',
    world: 'long work and crashes',
    aims: [{ step: 'w1 renew', fault: 'ends before' }],
  },
  { cure: 'producer lease, renewed by time', world: 'appended with long pauses', aims: [] },
  {
    cure: 'watchdog of the blocking connection',
    world: 'many turns of two',
    aims: [{ step: 'w1 enter' }, { step: 'w2 pop', fault: 'no answer' }],
  },
];

export const aimedAt = (history: string, part: number): readonly Course[] =>
  aimed.filter((one) => one.history === history && one.parts.includes(part));
