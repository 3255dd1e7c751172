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
  {
    history: 'a delayed retry keeps its delay when the worker that failed it leaves',
    parts: [1],
    world: 'two requests take turns',
    aims: [],
  },
  {
    history: 'the failure of a worker that lost its lease does not touch what another runs by then',
    parts: [1],
    world: 'long work',
    aims: [{ step: 'w1 ends a 1' }, { step: 'w1 settle', fault: 'ends, much later' }],
  },
  {
    history:
      'the success of a worker that lost its lease counts, and takes the entry out of the pool',
    parts: [1],
    world: 'long work',
    aims: [{ step: 'w1 renew', fault: 'stands still' }],
  },
  {
    history: 'a success that is reported twice counts once',
    parts: [1],
    world: 'a long one among short ones',
    aims: [{ step: 'w1 settle', fault: 'sent again' }],
  },
  {
    history: 'a create that comes after its intent was given up is refused',
    parts: [1],
    world: 'a producer and a worker',
    aims: [{ step: 'p create', fault: 'ends, much later' }],
  },
  {
    history: 'the tombstone of an intent outlasts the retention of the generation before',
    parts: [1],
    world: 'an id that is retained',
    aims: [{ step: 'p create', fault: 'ends, much later' }],
  },
  {
    history: 'a generation that one submitter was refused cannot be created by another',
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
    history: 'a late finish of one generation leaves the next one of the id alone',
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
    history: 'a settle that arrives again late does not bring permits back',
    parts: [1],
    world: 'a long one among short ones',
    aims: [
      { step: 'w1 settle', nth: 2, fault: 'late' },
      { step: 'w1 settle', nth: 2, hold: [LATE] },
    ],
  },
  {
    history: 'a leave that arrives after the worker entered again takes no permit away',
    parts: [1],
    world: 'appended with long pauses',
    aims: [{ step: 'w1 ends a 0' }, { step: 'w1 settle', nth: 2, fault: 'much later' }],
  },
  {
    history: 'a failure that arrives after its worker took the retry does not count for the retry',
    parts: [1],
    world: 'long work of one worker',
    aims: [{ step: 'w1 ends a 0' }, { step: 'w1 settle', fault: 'much later' }],
  },
  {
    history: 'a sub-request returned to a request that is being cancelled is cancelled',
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
    history:
      'sub-requests of a dead worker are cancelled at once when their request is being cancelled',
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
    history: 'a sub-request returned by a worker without a permit gets a token',
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
    history: 'a token that a tend minted and somebody lost is missed within the audit period',
    parts: [1],
    world: 'long work of one worker',
    aims: [{ step: 'w1 renew', fault: 'ends before' }],
  },
  {
    history: 'one lost token of ten is missed while nine workers stay busy',
    parts: [1],
    world: 'many turns of two',
    aims: [{ step: 'w1 enter' }, { step: 'w2 pop', fault: 'ends after' }],
  },
  {
    history: 'a tick that was frozen does not undo what a later one wrote',
    parts: [1],
    world: 'appended with long pauses',
    aims: [{ step: 'w1 tend', fault: 'stands still' }],
  },
  {
    history: 'nothing is lost when the consumer of a dead worker is removed',
    parts: [2],
    world: 'long work',
    aims: [{ step: 'w1 renew', fault: 'ends before' }],
  },
  {
    history: 'the token of a worker that leaves is counted before it can be popped',
    parts: [2],
    world: 'long work',
    aims: [],
  },
  {
    history: 'a request completes although no notice could be published',
    parts: [1],
    world: 'one worker, one sub-request',
    aims: [{ step: 'w1 ends a 0' }, { step: 'w1 settle', fault: 'not published' }],
  },
  {
    history: 'a request whose producer gives a sign of life stays open',
    parts: [1],
    world: 'appended with long pauses',
    aims: [],
  },
  {
    history: 'a request whose producer gives a sign of life stays open',
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
    history: 'workers that serve a task continue when one that does not meets the request',
    parts: [1, 2],
    world: 'met by one who does not serve it',
    aims: [],
  },
  {
    history: 'only a sub-request that ran alone can fail by a crash',
    parts: [1],
    world: 'long work and crashes',
    aims: [
      { step: 'w1 renew', fault: 'ends before' },
      { step: 'w2 take' },
      { step: 'w2 tick', fault: 'ends before' },
    ],
  },
  {
    history: 'only a sub-request that ran alone can fail by a crash',
    parts: [2, 3],
    world: 'one that ends its worker',
    aims: [],
  },
  {
    history:
      'a crash counts for every entry of the worker, also for those that the next tend takes back',
    parts: [1],
    world: 'one holds many',
    aims: [{ step: 'w1 ends', fault: 'ends before' }],
  },
  {
    history: 'after Redis was away, a worker has its whole lease to renew',
    parts: [1],
    world: 'long work',
    aims: [
      { step: 'w1 renew', fault: 'Redis stands still' },
      { step: 'w2 tend', hold: ['w1 renew', 'w1 settle', 'w1 tend', 'w1 tick'] },
    ],
  },
  {
    history: 'after Redis was away, a worker has its whole lease to renew',
    parts: [2],
    world: 'long work',
    aims: [
      { step: 'w1 renew', fault: 'Redis stands still' },
      { step: 'w2 tend', nth: 2, hold: ['w1 renew', 'w1 settle', 'w1 tend', 'w1 tick'] },
    ],
  },
  {
    history: 'a Redis that comes and goes does not leave a dead worker its permits for ever',
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
    history:
      'a generation that is dropped is forgotten though the next one is open and comes to nothing',
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
    history: 'a drop that was cut in two can be taken up when the next intent came to nothing',
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
    history: 'a step of the clock beside an outage leaves a worker its whole lease to renew',
    parts: [1],
    world: 'one that throws at last',
    aims: [
      { step: 'w1 hget', nth: 2, fault: 'clock an hour forward' },
      { step: 'w1 tick', fault: 'Redis stands still' },
      { step: 'w2 tend', hold: ['w1 renew'] },
    ],
  },
  {
    history: 'a tend that was under way while Redis was away takes nothing from any worker',
    parts: [1],
    world: 'long work',
    aims: [{ step: 'w1 tick', nth: 9, fault: 'Redis stands still' }],
  },
  {
    history: 'a create that comes when a short retention is over brings nothing into being',
    parts: [1, 2, 3],
    world: 'a short retention',
    aims: [{ step: 'p create', fault: 'much later' }],
  },
  {
    history: 'a drop that arrives late leaves the next generation of the id alone',
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
