import {
  TimedCommands as Commands,
  TIMES,
  type TimedCommands,
  type TimedOutcome,
} from '@piecework/protocol';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { connected, freshName } from '../support/given.js';
import { playTraces } from '../support/trace.js';

/*
 * Short histories of a timed set that would go wrong without one line of its scripts, played with it and
 * without it.
 */

useTestClock();

const LEASE_MS = 5_000;

/** A set in which `keys` are due, in this order, put by 'p'. */
async function due(...keys: string[]): Promise<TimedCommands> {
  const set = new Commands(await connected(), 'retry', freshName('timed'));
  const entries = keys.map((key, i) => ({ key, time: 1 + i, token: '', payload: '1' }));
  await set.put('p', 1, entries);
  return set;
}

async function take(set: TimedCommands, who: string, number = 1, count = 9) {
  const took = await set.take(who, number, count, LEASE_MS);
  if (took.verdict === 'late') throw new Error('late');
  return { token: took.token, keys: took.taken.map(({ key }) => key) };
}

async function settle(
  set: TimedCommands,
  token: string,
  verb: TimedOutcome['verb'],
  { number = 1, value = '' as string | number, who = token } = {},
) {
  const outcome = { key: 'x', token: verb === 'remove' ? '' : token, verb, value };
  return set.settle(who, number, 3, [outcome]);
}

/** The server's clock steps forward, from an hour behind to an hour ahead, which ends what is kept for a time. */
async function stepForward({ keys }: TimedCommands, callers: readonly string[]): Promise<void> {
  const { client } = await connected();
  moveClock(TIMES.longestStepMs);
  for (const caller of callers.map(keys.caller)) {
    const leftMs = await client.pttl(caller);
    await client.pexpire(caller, leftMs - TIMES.longestStepMs);
  }
}

/** Puts 'x' again, as somebody does who has no lease of it. */
const move = (set: TimedCommands, time: number | `+${number}`, token = '', number = 2) =>
  set.put('p', number, [{ key: 'x', time, token, payload: '' }]);

playTraces('without', {
  'a taker that lost an item to another changes nothing': {
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      moveClock(LEASE_MS);
      await take(set, 'b');
      expect(await settle(set, token, 'retry', { value: '+0' })).toEqual(['lost']);
      expect((await take(set, 'c')).keys).toEqual([]);
    },
    without: [{ script: 'timed-settle', cure: 'the token of the lease' }],
  },
  'a settle that arrives twice, or late, is not done again': {
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      expect(await settle(set, token, 'done', { who: 'w' })).toEqual(['ok']);
      expect(await settle(set, token, 'done', { who: 'w' })).toEqual(['ok']);
      await settle(set, '', 'remove', { number: 2, who: 'w' });
      await move(set, 1);
      expect(await settle(set, '', 'remove', { number: 2, who: 'w' })).toEqual(['lost']);
      await settle(set, '', 'done', { number: 3, who: 'w' });
      expect(await settle(set, '', 'remove', { number: 2, who: 'w' })).toBe('late');
      expect((await take(set, 'b')).keys).toEqual(['x']);
    },
    without: [
      { script: 'timed-settle', cure: 'the number of a settle', change: 'never' },
      { script: 'timed-settle', cure: 'the number of a settle, 2', change: 'never' },
    ],
  },
  'a put that arrives twice, or late, is not done again': {
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      await settle(set, token, 'done');
      await set.put('p', 1, [{ key: 'x', time: 1, token: '', payload: '1' }]);
      expect((await take(set, 'b')).keys).toEqual([]);
      await move(set, '+9000', '', 3);
      await move(set, 1, '', 2);
      expect((await take(set, 'c')).keys).toEqual([]);
    },
    without: [
      { script: 'timed-put', cure: 'the number of a put', change: 'never' },
      { script: 'timed-put', cure: 'the number of a put, 2', change: 'never' },
    ],
  },
  'a put that arrives again after a step of the clock, when its item is done, is not done again': {
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      await settle(set, token, 'done');
      await stepForward(set, ['p']);
      await set.put('p', 1, [{ key: 'x', time: 1, token: '', payload: '1' }]);
      expect((await take(set, 'b')).keys).toEqual([]);
    },
    without: [
      {
        script: 'timed-put',
        cure: 'the number of a put, the clock ahead',
        change: { becomes: '300000' },
      },
    ],
  },
  'a settle that arrives again after a step of the clock gets the same answer': {
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      expect(await settle(set, token, 'done', { who: 'w' })).toEqual(['ok']);
      await stepForward(set, ['w']);
      expect(await settle(set, token, 'done', { who: 'w' })).toEqual(['ok']);
    },
    without: [
      {
        script: 'timed-settle',
        cure: 'the number of a settle, the clock ahead',
        change: { becomes: '300000' },
      },
    ],
  },
  'a take that arrives twice gets the same, one that arrives late gets nothing': {
    play: async () => {
      const set = await due('x', 'y', 'z');
      expect((await take(set, 'a', 2, 1)).keys).toEqual(['x']);
      expect((await take(set, 'a', 2, 1)).keys).toEqual(['x']);
      await expect(take(set, 'a', 1, 1)).rejects.toThrow('late');
      expect((await take(set, 'b')).keys).toEqual(['y', 'z']);
    },
    without: [
      { script: 'timed-take', cure: 'the number of a take', change: 'never' },
      { script: 'timed-take', cure: 'the number of a take, 2', change: 'never' },
    ],
  },
  'a take that arrives again after its lease gets no item that another may have': {
    play: async () => {
      const set = await due('x');
      await take(set, 'a');
      moveClock(LEASE_MS);
      await take(set, 'b');
      expect((await take(set, 'a')).keys).toEqual([]);
    },
    without: [
      {
        script: 'timed-take',
        cure: 'a lease that ended is no answer',
        change: { becomes: 'entry.lease and entry.lease.ends > 0' },
      },
    ],
  },
  'an item that is moved while another has it begins no second lease and is not lost': {
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      await move(set, 1);
      expect((await take(set, 'b')).keys).toEqual([]);
      expect(await settle(set, token, 'done')).toEqual(['ok']);
      expect((await take(set, 'b')).keys).toEqual(['x']);
    },
    without: [
      { script: 'timed-put', cure: 'a move beside the lease', change: 'never' },
      { script: 'timed-put', cure: 'a move beside the lease, 2', change: { becomes: 'time' } },
      { script: 'timed-put', cure: 'a move beside the lease, 3' },
    ],
  },
  'an item that is moved after its lease ended is not ended by its former taker': {
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      moveClock(LEASE_MS);
      await move(set, 1);
      expect(await settle(set, token, 'done')).toEqual(['lost']);
      expect((await take(set, 'b')).keys).toEqual(['x']);
    },
    without: [{ script: 'timed-put', cure: 'a move of what was in a lease that ended' }],
  },
  'an item that is removed while another has it begins no second lease': {
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      expect(await settle(set, '', 'remove', { who: 'w' })).toEqual(['ok']);
      await move(set, 1);
      expect((await take(set, 'b')).keys).toEqual([]);
      expect(await settle(set, token, 'done')).toEqual(['ok']);
    },
    without: [{ script: 'timed-settle', cure: 'a removal beside the lease', change: 'never' }],
  },
  'an item that was removed while another had it does not come again': {
    play: async () => {
      const set = await due('x');
      await take(set, 'a');
      await settle(set, '', 'remove', { who: 'w' });
      moveClock(LEASE_MS);
      expect((await take(set, 'b')).keys).toEqual([]);
      expect(await set.counts()).toMatchObject({ waiting: 0, leased: 0 });
    },
    without: [
      { script: 'timed-settle', cure: 'what was removed goes with the lease' },
      {
        script: 'timed-take',
        cure: 'what was removed goes with the lease, 2',
        change: {
          becomes:
            "entry.lease and entry.lease.after == 'gone' and (function() entry.lease.after = '-' return false end)()",
        },
      },
    ],
  },
  'an item that is moved beyond its lease and renewed is due at its new time': {
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      await move(set, '+60000');
      await settle(set, token, 'keep', { value: LEASE_MS });
      moveClock(2 * LEASE_MS);
      expect((await take(set, 'b')).keys).toEqual([]);
    },
    without: [
      {
        script: 'timed-settle',
        cure: 'a renewal of what was moved',
        change: { becomes: 'entry.lease.ends' },
      },
    ],
  },
  'after the clock went back by an hour, the item of a dead taker is due when its lease ends': {
    play: async () => {
      const set = await due('x');
      await take(set, 'dead');
      moveClock(-3_600_000);
      expect((await take(set, 'b')).keys).toEqual([]);
      moveClock(LEASE_MS);
      expect((await take(set, 'b', 2)).keys).toEqual(['x']);
    },
    without: [{ script: 'timed-take', cure: 'a lease, the clock back', change: 'never' }],
  },
  'a lease that was renewed for longer is believed for as long, also when the clock went back': {
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      await settle(set, token, 'keep', { value: 4 * LEASE_MS });
      moveClock(-LEASE_MS);
      expect((await take(set, 'b')).keys).toEqual([]);
      moveClock(3 * LEASE_MS);
      expect((await take(set, 'b', 2)).keys).toEqual([]);
    },
    without: [
      [
        { script: 'timed-settle', cure: 'a renewal, the clock back' },
        {
          script: 'timed-settle',
          cure: 'a renewal, the clock back, 2',
          change: { becomes: 'at + tonumber(value)' },
        },
      ],
    ],
  },
});
