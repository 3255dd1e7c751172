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
  'the token of the lease': {
    says: 'whoever lost a task to another changes nothing',
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      moveClock(LEASE_MS);
      await take(set, 'b');
      expect(await settle(set, token, 'retry', { value: '+0' })).toEqual(['lost']);
      expect((await take(set, 'c')).keys).toEqual([]);
    },
    without: [
      {
        script: 'timed-settle',
        from: 'elseif entry.lease and entry.lease.token == token then',
        to: 'elseif entry.lease then',
      },
    ],
  },
  'the number of a settle': {
    says: 'a settle that arrives twice, or late, is not done again',
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
      { script: 'timed-settle', from: 'if number == last then', to: 'if false then' },
      { script: 'timed-settle', from: 'if number < last then', to: 'if false then' },
    ],
  },
  'the number of a put': {
    says: 'a put that arrives twice, or late, is not done again',
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
      { script: 'timed-put', from: 'if number == last then', to: 'if false then' },
      { script: 'timed-put', from: 'if number < last then', to: 'if false then' },
    ],
  },
  'the number of a put, the clock ahead': {
    says: 'a put that arrives again when the clock stepped, and what it put is over, is not done again',
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      await settle(set, token, 'done');
      await stepForward(set, ['p']);
      await set.put('p', 1, [{ key: 'x', time: 1, token: '', payload: '1' }]);
      expect((await take(set, 'b')).keys).toEqual([]);
    },
    without: [{ script: 'timed-put', from: 'caller, rememberMs)', to: 'caller, 300000)' }],
  },
  'the number of a settle, the clock ahead': {
    says: 'a settle that arrives again when the clock stepped is answered the same',
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      expect(await settle(set, token, 'done', { who: 'w' })).toEqual(['ok']);
      await stepForward(set, ['w']);
      expect(await settle(set, token, 'done', { who: 'w' })).toEqual(['ok']);
    },
    without: [{ script: 'timed-settle', from: 'caller, rememberMs)', to: 'caller, 300000)' }],
  },
  'the number of a take': {
    says: 'a take that arrives twice gets the same, one that arrives late gets nothing',
    play: async () => {
      const set = await due('x', 'y', 'z');
      expect((await take(set, 'a', 2, 1)).keys).toEqual(['x']);
      expect((await take(set, 'a', 2, 1)).keys).toEqual(['x']);
      await expect(take(set, 'a', 1, 1)).rejects.toThrow('late');
      expect((await take(set, 'b')).keys).toEqual(['y', 'z']);
    },
    without: [
      { script: 'timed-take', from: 'if number == last then', to: 'if false then' },
      { script: 'timed-take', from: 'if number < last then', to: 'if false then' },
    ],
  },
  'a lease that ended is no answer': {
    says: 'a take that arrives again after its lease gets nothing that may be in other hands',
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
        from: 'entry.lease.token == token and entry.lease.ends > at then',
        to: 'entry.lease.ends > 0 then',
      },
    ],
  },
  'a move beside the lease': {
    says: 'what is moved while another has it begins no second lease and is not lost',
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      await move(set, 1);
      expect((await take(set, 'b')).keys).toEqual([]);
      expect(await settle(set, token, 'done')).toEqual(['ok']);
      expect((await take(set, 'b')).keys).toEqual(['x']);
    },
    without: [
      {
        script: 'timed-put',
        from: 'if lease and lease.ends > at and lease.token ~= token then',
        to: 'if false then',
      },
      { script: 'timed-put', from: 'math.max(time, lease.ends)', to: 'time' },
      { script: 'timed-put', from: 'lease.after = timedText(time)', to: '' },
    ],
  },
  'a move of what was in a lease that ended': {
    says: 'what is moved when its lease is over is not ended by whoever had it',
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      moveClock(LEASE_MS);
      await move(set, 1);
      expect(await settle(set, token, 'done')).toEqual(['lost']);
      expect((await take(set, 'b')).keys).toEqual(['x']);
    },
    without: [
      {
        script: 'timed-put',
        from: 'entry.lease = false\nentry.due = time',
        to: 'entry.due = time',
      },
    ],
  },
  'a removal beside the lease': {
    says: 'what is removed while another has it begins no second lease',
    play: async () => {
      const set = await due('x');
      const { token } = await take(set, 'a');
      expect(await settle(set, '', 'remove', { who: 'w' })).toEqual(['ok']);
      await move(set, 1);
      expect((await take(set, 'b')).keys).toEqual([]);
      expect(await settle(set, token, 'done')).toEqual(['ok']);
    },
    without: [
      {
        script: 'timed-settle',
        from: 'if entry.lease and entry.lease.ends > at then',
        to: 'if false then',
      },
    ],
  },
  'what was removed goes with the lease': {
    says: 'what was removed while another had it does not come again',
    play: async () => {
      const set = await due('x');
      await take(set, 'a');
      await settle(set, '', 'remove', { who: 'w' });
      moveClock(LEASE_MS);
      expect((await take(set, 'b')).keys).toEqual([]);
      expect(await set.counts()).toMatchObject({ waiting: 0, leased: 0 });
    },
    without: [
      { script: 'timed-settle', from: "entry.lease.after = 'gone'", to: '' },
      {
        script: 'timed-take',
        from: "if entry.lease and entry.lease.after == 'gone' then",
        to: "if entry.lease and entry.lease.after == 'gone' then\nentry.lease.after = '-'\nend\nif false then",
      },
    ],
  },
  'a renewal of what was moved': {
    says: 'what is moved beyond its lease and renewed comes at its new time',
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
        from: 'math.max(tonumber(entry.lease.after) or 0, entry.lease.ends)',
        to: 'entry.lease.ends',
      },
    ],
  },
  'a lease, the clock back': {
    says: 'after the clock went back by an hour, what a dead taker held comes when its lease is over',
    play: async () => {
      const set = await due('x');
      await take(set, 'dead');
      moveClock(-3_600_000);
      expect((await take(set, 'b')).keys).toEqual([]);
      moveClock(LEASE_MS);
      expect((await take(set, 'b', 2)).keys).toEqual(['x']);
    },
    without: [{ script: 'timed-take', from: 'timedClockBack({}, keys, at)', to: 'false' }],
  },
  'a renewal, the clock back': {
    says: 'a lease that was renewed for longer is believed for as long, also when the clock went back',
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
      {
        script: 'timed-settle',
        from: 'entry.lease.ms = tonumber(value)\nentry.lease.ends = at + entry.lease.ms',
        to: 'entry.lease.ends = at + tonumber(value)',
      },
    ],
  },
});
