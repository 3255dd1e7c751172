import { Agenda, Connection, decodeCost, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import type { HandlerContext, Worker } from '@piecework/worker';
import { expect } from 'vitest';
import { buildScripts } from '../../scripts/lua-source.mjs';
import { stateOf } from './compact.js';
import { LEASE_MS } from './fleet.js';
import { type Flow, numbers } from './flow.js';
import { type Program, startProgram } from './processes.js';
import { until } from './until.js';

/*
 * The same small run again and again, each in a queue of its own: a worker process (the victim) works
 * two requests of equal priority that take turns, and meets its fate at its n-th command; another
 * worker does the rest. Whatever n is, both requests complete, counted exactly.
 */

/** Four sub-requests, of which this index fails; and two more. */
const SIZES = [4, 2];
const FAILS = 2;
/** Runs under way at once; most of their time is waiting for leases. */
const AT_ONCE = 6;
const TICK_EVERY_MS = 200;
const PATIENCE_MS = 60_000;

const nameOf = new Map(Object.entries(buildScripts()).map(([name, { sha }]) => [sha, name]));

export interface Fate {
  readonly signal: 'SIGKILL' | 'SIGSTOP';
  readonly at: number;
  readonly when: 'before' | 'after';
}

/** What became of one run. */
export interface Point extends Fate {
  /** The command, or script, at which it met its fate; '' when the run needed no n-th. */
  readonly command: string;
}

/** Runs for n = 1, 2, 3 … until a run needs no n-th command. */
export async function everyPoint(
  flow: Flow,
  fate: Omit<Fate, 'at'>,
  run: (flow: Flow, fate: Fate) => Promise<Point>,
): Promise<Point[]> {
  const points: Point[] = [];
  let [next, over] = [1, false];
  const lane = async () => {
    while (!over) {
      const at = next;
      next += 1;
      const point = await run(flow, { ...fate, at }).catch((error: unknown) => {
        over = true;
        throw new Error(`${fate.signal} ${fate.when} command ${at}`, { cause: error });
      });
      if (point.command === '') over = true;
      else points.push(point);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return points.sort((a, b) => a.at - b.at);
}

export class PointRun {
  readonly fate: Fate;
  readonly victim: Program;
  readonly queue: QueueCommands;
  readonly ids: string[] = [];
  readonly #flow: Flow;
  readonly #agenda: Agenda;
  readonly #connection: Connection;
  #rescuer: Worker | undefined;

  constructor(flow: Flow, fate: Fate) {
    const name = `${flow.queue}-${fate.when}-${fate.at}`;
    this.#flow = flow;
    this.fate = fate;
    this.#connection = Connection.open(flow.connection.client);
    this.queue = new QueueCommands(this.#connection, name);
    this.#agenda = new Agenda(this.#connection, this.queue);
    // quantumMs 0: the requests take turns after each sub-request, so that every call occurs.
    const options = { redis: flow.redis, queue: name, concurrency: 2, leaseMs: LEASE_MS };
    this.victim = startProgram(flow, 'worker', {
      options: { ...options, quantumMs: 0 },
      handle: { minMs: 1, maxMs: 3, fail: FAILS },
      fate,
    });
  }

  async submit(): Promise<void> {
    for (const [i, size] of SIZES.entries()) {
      const id = `${this.queue.keys.queue}.${i}`;
      const { client } = this.#connection;
      const producer = this.#flow.producer({ redis: client, queue: this.queue.keys.queue });
      await producer.submit(numbers(size), { id, limit: 2 });
      this.ids.push(id);
    }
  }

  /** Waits until the victim met its fate; answers the command, or '' when the run was over before. */
  async met(): Promise<string> {
    let command: string | undefined;
    let failure: unknown;
    const listening = async () => {
      while (command === undefined) {
        const said = { timeoutMs: 2 * PATIENCE_MS };
        const line = await this.victim.said<{ command?: string; sha?: string }>(said);
        if (line.command) command = nameOf.get(line.sha ?? '') ?? line.command;
      }
    };
    listening().catch((error: unknown) => {
      failure = error;
    });
    const what = 'the victim meets its fate, or is done';
    const known = async () => command !== undefined || failure || (await this.over());
    await until(known, { timeoutMs: PATIENCE_MS, what });
    if (failure) throw failure;
    return command ?? '';
  }

  /** Whether both requests are complete and have left the queue side. */
  async over(): Promise<boolean> {
    for (const id of this.ids) {
      const state = await new RequestCommands(this.#connection, id).state();
      if (state?.status !== 'complete') return false;
      if ((await this.queue.whereabouts(id)).open !== undefined) return false;
    }
    return true;
  }

  /** Another worker, which does what is left. */
  async rescue(): Promise<void> {
    const handler = (n: number, { index, usage }: HandlerContext) => {
      usage({ runs: 1 });
      if (index === FAILS) throw new Error('failed');
      return n;
    };
    this.#rescuer = this.#flow.worker({
      redis: this.#flow.connection.client,
      queue: this.queue.keys.queue,
      handler,
    });
    await this.#rescuer.start();
  }

  /** Ticks as if both requests were due, until the condition holds. */
  async tickUntil(condition: () => boolean | Promise<boolean>): Promise<void> {
    const tended = async () => {
      if (await condition()) return true;
      for (const id of this.ids) {
        const { open } = await this.queue.whereabouts(id);
        if (open !== undefined) await this.queue.scheduleTend(id, open, 0);
      }
      await this.#agenda.tick();
      return false;
    };
    await until(tended, {
      timeoutMs: PATIENCE_MS,
      everyMs: TICK_EVERY_MS,
      what: 'the fleet repairs it',
    });
  }

  /** Server time in ms. */
  async now(): Promise<number> {
    const [seconds, micros] = await (this.#connection.client as import('ioredis').Redis).time();
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  }

  /** Fails unless both and their costs are counted exactly, and each index has one result. */
  async check(): Promise<void> {
    for (const [i, size] of SIZES.entries()) {
      const id = this.ids[i] as string;
      const failed = size > FAILS ? 1 : 0;
      const counts = { total: size, succeeded: size - failed, failed, cancelled: 0 };
      expect(await new RequestCommands(this.#connection, id).state()).toMatchObject(counts);
      const { cost } = await stateOf(this.#connection.client, this.#flow.request(id).keys.request);
      const { usage, attempts } = decodeCost(cost);
      expect(usage).toEqual({ runs: size });
      expect(attempts).toBeGreaterThanOrEqual(size);
      const results = await this.#flow.results(id);
      expect([...results.keys()].sort()).toEqual(numbers(size));
      for (const [index, value] of results) {
        expect(value).toEqual(index === FAILS ? { failed: true } : index);
      }
    }
  }

  /** A victim cannot strike itself out; the registry would forget it a minute later. */
  async end(): Promise<void> {
    await this.#rescuer?.close();
    for (const { id } of await this.queue.workers()) await this.queue.deregister(id);
  }
}
