import type { TimedCommands, TimedOutcome } from '@piecework/protocol';
import { describe, expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { test as it, type Timed } from '../support/timed.js';

useTestClock();

const LEASE_MS = 5_000;

/** Calls the scripts with numbers that rise by themselves. */
class Caller {
  readonly commands: TimedCommands;
  readonly #id: string;
  #number = 0;
  constructor(timed: Timed, id: string, commands = timed.commands()) {
    this.commands = commands;
    this.#id = id;
  }
  put(key: string, time: number | `+${number}`, { token = '', payload = '' } = {}) {
    this.#number += 1;
    return this.commands.put(this.#id, this.#number, [{ key, time, token, payload }]);
  }
  async take(count = 10, leaseMs = LEASE_MS, number = this.#number + 1) {
    this.#number = Math.max(number, this.#number);
    const took = await this.commands.take(this.#id, number, count, leaseMs);
    if (took.verdict === 'late') throw new Error('late');
    return took;
  }
  async settle(
    key: string,
    token: string,
    verb: TimedOutcome['verb'],
    value: string | number = '',
  ) {
    this.#number += 1;
    const outcome = { key, token, verb, value } as const;
    const verdicts = await this.commands.settle(this.#id, this.#number, 3, [outcome]);
    return verdicts[0];
  }
}

const keysOf = ({ taken }: { taken: readonly { key: string }[] }) => taken.map(({ key }) => key);

async function two(timed: Timed) {
  const hands = [new Caller(timed, 'a'), new Caller(timed, 'b')] as const;
  const { now } = await hands[0].take();
  return { a: hands[0], b: hands[1], now };
}

describe('a take', () => {
  it('gets what is due, in due order, and no more than it asks for', async ({ timed }) => {
    const { a, now } = await two(timed);
    for (const [key, at] of Object.entries({ third: -1, first: -30, later: 4_000, second: -20 }))
      await a.put(key, now + at);
    const took = await a.take(2);
    expect(keysOf(took)).toEqual(['first', 'second']);
    expect(took.taken.map(({ at }) => at - now)).toEqual([-30, -20]);
    expect(took.ends - took.now).toBe(LEASE_MS);
    expect(took.next).toBe(took.now);
    const rest = await a.take(2);
    expect(keysOf(rest)).toEqual(['third']);
    expect(rest.next).toBe(now + 4_000);
  });

  it('says when to ask again: never, when nothing is there', async ({ timed }) => {
    expect(await new Caller(timed, 'a').take()).toMatchObject({ next: -1, taken: [] });
  });

  it('gets nothing that another has, until that lease is over', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('key', now);
    const { ends } = await a.take();
    expect(await b.take()).toMatchObject({ taken: [], next: ends });
    moveClock(LEASE_MS);
    const again = await b.take();
    expect(again.taken).toEqual([expect.objectContaining({ key: 'key', at: now })]);
  });

  it('that arrives twice is answered the same, and takes nothing more', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    for (const [i, key] of ['one', 'two', 'three'].entries()) await a.put(key, now - 9 + i);
    const first = await b.take(2, LEASE_MS, 7);
    moveClock(1_000);
    const again = await b.take(2, LEASE_MS, 7);
    expect(again).toEqual({ ...first, now: expect.any(Number), next: expect.any(Number) });
    expect(keysOf(await a.take())).toEqual(['three']);
  });

  it('that arrives behind a later one takes nothing', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('one', now);
    await b.take(1, LEASE_MS, 7);
    await a.put('two', now);
    await expect(b.take(1, LEASE_MS, 6)).rejects.toThrow('late');
    expect(keysOf(await a.take())).toEqual(['two']);
  });

  it('that arrives twice, when its keys are in other hands, takes anew', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('one', now);
    await b.take(1, LEASE_MS, 7);
    moveClock(LEASE_MS);
    expect(keysOf(await a.take())).toEqual(['one']);
    await a.put('two', now);
    expect(keysOf(await b.take(2, LEASE_MS, 7))).toEqual(['two']);
  });
});

describe('what is settled', () => {
  it('as done is gone, once', async ({ timed }) => {
    const { a, now } = await two(timed);
    await a.put('key', now, { payload: '1' });
    const { token } = await a.take();
    expect(await a.settle('key', token, 'done')).toBe('ok');
    expect(await a.settle('key', token, 'done')).toBe('lost');
    const keys = (await timed.keys()).filter((key) => !key.includes(':caller:'));
    expect(keys).toEqual([]);
  });

  it('counts behind the end of the lease, until another has taken it', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('late', now);
    await a.put('lost', now);
    const { token } = await a.take();
    moveClock(LEASE_MS);
    expect(await a.settle('late', token, 'done')).toBe('ok');
    const taken = await b.take();
    expect(keysOf(taken)).toEqual(['lost']);
    for (const verb of ['done', 'retry', 'back', 'discard', 'keep'] as const)
      expect(await a.settle('lost', token, verb, '+0')).toBe('lost');
    expect(await b.settle('lost', taken.token, 'done')).toBe('ok');
  });

  it('to be tried again comes then, with one failure more', async ({ timed }) => {
    const { a, now } = await two(timed);
    await a.put('key', now, { payload: '"x y\nz"' });
    for (const numFailures of [0, 1, 2]) {
      const took = await a.take();
      expect(took.taken).toMatchObject([{ numFailures, payload: '"x y\nz"' }]);
      expect(await a.settle('key', took.token, 'retry', '+900')).toBe('ok');
      expect(await a.take()).toMatchObject({ taken: [], next: expect.any(Number) });
      moveClock(900);
    }
  });

  it('as given back is due as before', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('key', now - 7, { payload: '1' });
    const { token } = await a.take();
    await a.settle('key', token, 'back');
    expect((await b.take()).taken).toMatchObject([{ at: now - 7, numFailures: 0 }]);
  });

  it('as failed for good is kept, the newest of them', async ({ timed }) => {
    const { a, now } = await two(timed);
    for (const key of ['1', '2', '3', '4', '5']) {
      await a.put(key, now, { payload: key });
      const { token } = await a.take();
      await a.settle(key, token, 'discard', `no ${key}`);
    }
    const { found } = await a.commands.failures('', 10);
    expect(found).toMatchObject(
      ['3', '4', '5'].map((key) => ({ key, payload: key, message: `no ${key}`, numFailures: 1 })),
    );
    expect(await a.commands.counts()).toMatchObject({ waiting: 0, leased: 0, failures: 3 });
  });

  it('is renewed for its holder', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('key', now);
    const { token } = await a.take();
    moveClock(LEASE_MS / 2);
    expect(await a.settle('key', token, 'keep', LEASE_MS)).toBe('ok');
    moveClock(LEASE_MS / 2 + 1);
    expect(keysOf(await b.take())).toEqual([]);
    moveClock(LEASE_MS / 2);
    expect(keysOf(await b.take())).toEqual(['key']);
  });

  it('by a call that arrives twice is answered the same, and settled once', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('key', now);
    const { token } = await a.take();
    const outcome = { key: 'key', token, verb: 'done', value: '' } as const;
    expect(await a.commands.settle('c', 1, 0, [outcome])).toEqual(['ok']);
    await a.put('key', now);
    await b.take();
    expect(await a.commands.settle('c', 1, 0, [outcome])).toEqual(['ok']);
    expect(await a.commands.counts()).toMatchObject({ leased: 1 });
    expect(await a.commands.settle('c', 2, 0, [outcome])).toEqual(['lost']);
    expect(await a.commands.settle('c', 1, 0, [outcome])).toBe('late');
  });
});

describe('what is put', () => {
  it('is moved when it is there', async ({ timed }) => {
    const { a, now } = await two(timed);
    await a.put('key', now);
    await a.put('key', now + 3_000);
    expect(await a.take()).toMatchObject({ taken: [], next: now + 3_000 });
  });

  it('by a call that arrives twice is put once', async ({ timed }) => {
    const { a, now } = await two(timed);
    const entry = { key: 'key', time: now, token: '', payload: '' };
    expect(await a.commands.put('p', 4, [entry])).toEqual(['put']);
    const { token } = await a.take();
    await a.settle('key', token, 'done');
    expect(await a.commands.put('p', 4, [entry])).toEqual(['put']);
    expect(await a.commands.put('p', 3, [entry])).toBe('late');
    expect(keysOf(await a.take())).toEqual([]);
  });

  it('while another has it comes when that one is done, at the new time', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('key', now);
    const { token, ends } = await a.take();
    await b.put('key', now + 50);
    expect(await b.take()).toMatchObject({ taken: [], next: ends });
    expect(await a.settle('key', token, 'done')).toBe('ok');
    moveClock(50);
    expect((await b.take()).taken).toMatchObject([{ key: 'key', at: now + 50 }]);
  });

  it('while another has it comes at the new time when that lease ends', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('sooner', now);
    await a.put('later', now);
    await a.take();
    await b.put('sooner', now + 50);
    await b.put('later', now + 3 * LEASE_MS);
    moveClock(LEASE_MS + 50);
    expect((await b.take()).taken).toMatchObject([{ key: 'sooner', at: now + 50 }]);
    moveClock(2 * LEASE_MS);
    expect(keysOf(await b.take())).toContain('later');
  });

  it('by its holder ends the lease', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('key', now);
    const { token } = await a.take();
    await a.put('key', now + 50, { token });
    expect(await a.settle('key', token, 'done')).toBe('lost');
    moveClock(50);
    expect(keysOf(await b.take())).toEqual(['key']);
  });
});

describe('what is removed', () => {
  it('by any consumer is gone', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('key', now);
    expect(await b.settle('key', '', 'remove')).toBe('ok');
    expect(await b.settle('key', '', 'remove')).toBe('lost');
    expect(keysOf(await a.take())).toEqual([]);
  });

  it('while another has it gets no second lease, and goes with the first', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('key', now);
    await a.take();
    expect(await b.settle('key', '', 'remove')).toBe('ok');
    expect(await b.settle('key', '', 'remove')).toBe('lost');
    moveClock(LEASE_MS);
    expect(await b.take()).toMatchObject({ taken: [], next: -1 });
    expect((await timed.keys()).filter((key) => !key.includes(':caller:'))).toEqual([]);
  });

  it('and put again while another has it waits for that one', async ({ timed }) => {
    const { a, b, now } = await two(timed);
    await a.put('key', now);
    const { token } = await a.take();
    await b.settle('key', '', 'remove');
    await b.put('key', now);
    expect(keysOf(await b.take())).toEqual([]);
    await a.settle('key', token, 'done');
    expect(keysOf(await b.take())).toEqual(['key']);
  });
});

describe('a condition', () => {
  const said = (lua: string) => ({ lua, keys: ['open'] });

  it.for([
    ['fails', "error('no')", 'no'],
    ['calls Redis wrongly', "redis.call('INCR')", 'arg'],
    ['answers nothing', 'return nil', 'nil'],
    ['answers a text', "return 'many'", 'many'],
    ['answers less than none', 'return -1', '-1'],
    ['answers what is no number', 'return 0/0', 'nan'],
    ['says a wrong time', "return 0, 'soon'", 'soon'],
    ['is no Lua', 'return (', 'compiling'],
  ])('that %s takes nothing and is told', async ([, lua, words], { timed }) => {
    const a = new Caller(timed, 'a');
    await a.put('key', 0);
    const limited = new Caller(timed, 'c', timed.commands('schedule', said(lua as string)));
    await expect(limited.take()).rejects.toMatchObject({
      code: 'CONDITION',
      message: expect.stringContaining(words as string),
    });
    expect(keysOf(await a.take())).toEqual(['key']);
  });

  it('is given what is wanted, and says when to ask again', async ({ timed }) => {
    const a = new Caller(timed, 'a');
    for (const key of ['1', '2', '3', '4']) await a.put(key, 5);
    const half = timed.commands('schedule', said('return wanted / 2, 70'));
    const limited = new Caller(timed, 'c', half);
    const took = await limited.take(3);
    expect(keysOf(took)).toEqual(['1']);
    expect(took.next - took.now).toBe(70);
    const more = new Caller(timed, 'd', timed.commands('schedule', said('return 99')));
    expect(keysOf(await more.take(2))).toEqual(['2', '3']);
  });
});
