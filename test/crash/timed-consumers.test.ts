/**
 * Watches all that its server does.
 * @module-tag own-server
 */
import { type TimedKind, timedKeys } from '@piecework/protocol';
import { RetryQueue, Scheduler } from '@piecework/queues';
import type { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { mastersOf, numbers, test } from '../support/flow.js';
import { freshName } from '../support/given.js';
import { type Program, startProgram } from '../support/processes.js';
import { until } from '../support/until.js';

/*
 * Consumers in processes of their own, of whom one is killed and one is frozen for longer than its lease while
 * they hold something. Judged by what the server itself did, in its own order and by its own clock.
 */

const LEASE_MS = 900;
const N = 120;
/** What the two work at that are killed and frozen: each has something in hand then, however late that is. */
const LONG_MS = 3_000;

interface Lease {
  readonly token: string;
  readonly ends: number;
}

/** Follows every write to the leases of one set. */
class Observer {
  readonly #monitors: readonly Redis[];
  readonly #standing = new Map<string, Lease>();
  readonly wrong: string[] = [];
  leases = 0;
  expired = 0;

  /** One of these servers has them. */
  static async start(servers: readonly Redis[], leases: string): Promise<Observer> {
    const monitors = await Promise.all(servers.map((server) => server.monitor()));
    return new Observer(monitors as Redis[], leases);
  }

  private constructor(monitors: readonly Redis[], leases: string) {
    this.#monitors = monitors;
    const note = (_time: string, args: string[]) => {
      const [verb, key, ...rest] = args;
      if (key !== leases) return;
      if (/^hset$/i.test(verb ?? '')) this.#set(rest[0] as string, rest[1] as string);
      if (/^hdel$/i.test(verb ?? '')) for (const field of rest) this.#standing.delete(field);
    };
    for (const monitor of monitors) monitor.on('monitor', note);
  }

  #set(key: string, value: string): void {
    const [token = '', , ends = ''] = value.split(' ');
    const before = this.#standing.get(key);
    if (before?.token !== token) {
      this.leases += 1;
      const from = Number(ends) - LEASE_MS;
      if (before) {
        this.expired += 1;
        if (before.ends > from)
          this.wrong.push(`${key}: ${token} from ${from}, ${before.token} until ${before.ends}`);
      }
    }
    this.#standing.set(key, { token, ends: Number(ends) });
  }

  stop(): void {
    for (const monitor of this.#monitors) monitor.disconnect();
  }
}

interface Said {
  readonly took?: string;
  readonly settled?: string;
  readonly counted?: boolean;
}

/** Reads what a program says until it holds `n`, and goes on reading. */
function listened(program: Program, said: Said[]): void {
  const read = async () => {
    for (;;) said.push(await program.said<Said>({ timeoutMs: 600_000 }));
  };
  read().catch(() => {});
}

describe.for<TimedKind>(['retry', 'schedule'])('consumers of %s', (kind) => {
  test('that are killed or frozen lose nothing, and no key is in two hands', async ({ flow }) => {
    const { redis } = flow;
    const name = freshName('timed');
    const keys = timedKeys(kind, name);
    const observer = await Observer.start(mastersOf(flow.connection), keys.leases);
    flow.after(() => observer.stop());
    const queue = new RetryQueue<number>({ redis, name });
    const scheduler = new Scheduler<string>({ redis, name });
    flow.after(async () => {
      await queue.drop();
      await scheduler.drop();
      await Promise.all([queue.close(), scheduler.close()]);
      for (const key of await flow.keys()) {
        if (!key.includes(':caller:')) throw new Error(`${key} is left`);
        await flow.connection.client.unlink(key);
      }
    });
    const heard: Said[][] = [];
    const two = async (workMs: number) => {
      const argument = { redis, name, kind, leaseMs: LEASE_MS, demand: 4, workMs };
      const programs = numbers(2).map(() => startProgram(flow, 'timed-consumer', argument));
      for (const program of programs) {
        await program.said();
        heard.push([]);
        listened(program, heard.at(-1) as Said[]);
      }
      return programs as [Program, Program];
    };
    // These are there before anything is, and by themselves: each gets something.
    const [killed, frozen] = await two(LONG_MS);
    const names = numbers(N).map((i) => `k${i}`);
    await Promise.all(
      names.map((key, i) => (kind === 'retry' ? queue.put(i, { key }) : scheduler.enqueue(key, 1))),
    );
    const took = (i: number) => heard[i]!.some((one) => one.took);
    await until(() => took(0) && took(1));
    killed.kill('SIGKILL');
    frozen.kill('SIGSTOP');
    await two(40);
    const counts = async () => {
      const { waiting, ...held } =
        kind === 'retry' ? await queue.counts() : await scheduler.counts();
      return waiting + ('leased' in held ? held.leased : held.locked);
    };
    // Others have all that was left, what the frozen one held too; then it wakes up.
    await until(async () => (await counts()) === 0, { timeoutMs: 40_000 });
    frozen.kill('SIGCONT');
    const awake = heard[1]!.length;
    await until(() => heard[1]!.slice(awake).some((one) => one.settled));
    const settled = heard.flat().filter((one) => one.settled && one.counted);
    const expected = kind === 'retry' ? names.flatMap((key) => [`${key} 0`, `${key} 1`]) : names;
    const times = new Map<string, number>();
    for (const { settled: key = '' } of settled) times.set(key, (times.get(key) ?? 0) + 1);
    // What was settled by the killed one, it could not always say.
    for (const key of expected) expect(times.get(key) ?? 1, key).toBe(1);
    const taken = new Set(heard.flat().flatMap((one) => one.took ?? []));
    expect([...taken].sort()).toEqual([...expected].sort());
    expect(observer.wrong).toEqual([]);
    expect(observer.leases).toBeGreaterThanOrEqual(expected.length);
    expect(observer.expired).toBeGreaterThan(0);
  });
});
