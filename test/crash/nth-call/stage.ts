import { Notifier, type NotifierOptions } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import type { Connection } from '@piecework/protocol';
import { Worker, type WorkerOptions } from '@piecework/worker';
import { Redis } from 'ioredis';
import { Admin, DelayedTasks } from 'piecework';
import { leftAfterDrop } from '../../cast/judge.js';
import { payloads as payloadsBut } from '../../cast/roles/handler.js';
import { startUntilItWorks, workerOf } from '../../cast/roles/worker.js';
import { apart } from '../../support/apart.js';
import { clockOffset, moveClock } from '../../support/clock.js';
import { FaultyClients as Clients, type FaultyClients } from '../../support/faulty-client.js';
import type { RedisAddress } from '../../support/flow.js';
import { keysOf } from '../../support/leaks.js';
import type { Picture } from '../../support/peek.js';
import { until } from '../../support/until.js';
import { Company } from './company.js';

/*
 * One case of the n-th call loop: one actor whose clients are faulty, and others that are well.
 */

/** Payloads of `n` items; the last but one is bad. */
export const payloads = (n: number): string[] => payloadsBut(n, n - 2);

/** What a request has to come to, and what else a caller has to accept whose call failed. */
export interface Expected {
  readonly counts: {
    readonly succeeded?: number;
    readonly failed?: number;
    readonly cancelled?: number;
  };
  /** Or it was cancelled, with at most so many sub-requests. */
  readonly orCancelled?: number;
  /** Or it never came into being. */
  readonly orNothing?: boolean;
}

export type How = 'faulty' | 'well';
const DIED = Symbol('died');

export class Stage extends Company {
  readonly faults: FaultyClients;
  readonly #address: RedisAddress;
  readonly #well = new Clients();
  readonly #coming: Promise<unknown>[] = [];
  /** Set when everything has ended: an actor that ends now is not replaced. */
  closing = false;

  constructor(address: RedisAddress, connection: Connection, faults: FaultyClients) {
    super(connection, 'nth');
    this.#address = address;
    this.faults = faults;
  }

  client(how: How) {
    return (how === 'faulty' ? this.faults : this.#well).open(this.#address);
  }

  async producer(how: How, isApart = false): Promise<Producer> {
    const client = await this.client(how);
    // In a cluster the sides are apart anyway.
    const redis = isApart && client instanceof Redis ? apart(client) : client;
    return this.keep(new Producer({ redis, queue: this.queue }));
  }

  async tasks(how: How, moves: readonly string[] = []): Promise<DelayedTasks> {
    return this.keep(new DelayedTasks({ redis: await this.client(how), moves }));
  }

  async admin(how: How): Promise<Admin> {
    return this.keep(new Admin({ redis: await this.client(how), queue: this.queue }));
  }

  async notifier(how: How, options: Partial<NotifierOptions> = {}): Promise<Notifier> {
    const redis = await this.client(how);
    return this.keep(new Notifier({ redis, queue: this.queue, ...options }));
  }

  /** A worker that is not started. Its handler throws at what is bad. */
  async worker(how: How, options: Partial<WorkerOptions> = {}): Promise<Worker> {
    const { queue, log, handler } = this;
    const redis = await this.client(how);
    return this.keep(workerOf({ redis, queue, log, handler }, options));
  }

  /** Starts the faulty one, as a caller does: until it worked, or its process ended. */
  async start(open: (how: How) => Promise<{ start(): Promise<unknown> }>): Promise<void> {
    const { faults } = this;
    // What fails is the one call that went wrong. A process that has ended starts nothing any more.
    const failed = () => (faults.dead ? new Promise<void>(() => {}) : undefined);
    const started = startUntilItWorks(() => open('faulty'), failed);
    await Promise.race([started, faults.died]);
  }

  /** Does `work` with the faulty actor, and again with one that is well if the process of the first ended. */
  async takenOver<Actor, T>(
    open: (how: How) => Promise<Actor>,
    work: (actor: Actor, how: How) => Promise<T>,
  ): Promise<T> {
    const first = work(await open('faulty'), 'faulty');
    first.catch(() => {});
    const died = this.faults.died.then(() => DIED);
    const done = await Promise.race([died, first]);
    return done === DIED ? work(await open('well'), 'well') : (done as T);
  }

  /** Starts the faulty worker, and another when its process has ended, unless all has ended by then. */
  async replaced(open: (how: How) => Promise<{ start(): Promise<unknown> }>): Promise<void> {
    void this.faults.died.then(() => {
      if (!this.closing) this.comes(open('well').then((worker) => worker.start()));
    });
    await this.start(open);
  }

  /** Takes in actors that come in their own time: they are not closed before they are there. */
  comes(coming: Promise<unknown>): void {
    coming.catch(() => {});
    this.#coming.push(coming);
  }

  /** Says what is wrong with how a request ended; empty when nothing is. */
  async judge(id: string, expected: Expected): Promise<string[]> {
    const picture = await this.picture(id);
    const { status, outcome, counts } = picture;
    if (status === 'none' || status === 'void') {
      return expected.orNothing ? [] : [`${id} is ${status}`];
    }
    const wrong = [...this.wrongWith(id, picture), ...countsWrong(expected, outcome, counts)];
    return wrong.map((what) => `${id}: ${what}`);
  }

  /** Closes everything; says what is left, on either side of the network. */
  async close(): Promise<string[]> {
    this.closing = true;
    // One that is still connecting is known to nobody, and would stay.
    const came = await Promise.allSettled(this.#coming);
    const failed = came.filter((one) => one.status === 'rejected');
    const closing = this.opened.reverse().map((actor) => {
      if (actor instanceof Worker || actor instanceof DelayedTasks)
        return actor.close({ timeoutMs: this.faults.dead ? 0 : 5_000 });
      const closed = actor[Symbol.asyncDispose]();
      // The close of a process that has ended cannot send its calls, and nobody receives its error.
      return this.faults.dead ? closed.then(undefined, () => {}) : closed;
    });
    await Promise.all(closing);
    this.faults.end();
    this.#well.end();
    await until(() => this.faults.left + this.#well.left === 0, {
      what: 'no connection is left',
    });
    const absent = failed.map(({ reason }) => `did not come: ${reason}`);
    return [...this.logged(), ...absent, ...(await this.#sweep())];
  }

  /** What is left when all is dropped. */
  async #sweep(): Promise<string[]> {
    // A worker that went without a word is forgotten, and the next one that goes sweeps up.
    moveClock(61_000);
    await this.tickAll();
    const scenes = this.ids.map((id) => this.scene(id));
    const { client } = this.connection;
    const keys = () => keysOf(client, this.queue, ...this.ids);
    return leftAfterDrop(scenes, this.queues, client, keys);
  }

  story(): Promise<string> {
    return this.storyOf([...this.faults.log, `clock +${clockOffset()}`]);
  }
}

function countsWrong(expected: Expected, outcome: string, counts: Picture['counts']): string[] {
  const { total, succeeded, failed, cancelled } = counts;
  const sum = succeeded + failed + cancelled;
  const { orCancelled = -1 } = expected;
  if (outcome === 'cancelled' && sum === total && total <= orCancelled) return [];
  const wanted = { succeeded: 0, failed: 0, cancelled: 0, ...expected.counts };
  const right =
    succeeded === wanted.succeeded &&
    failed === wanted.failed &&
    cancelled === wanted.cancelled &&
    total === sum;
  return right
    ? []
    : [`${JSON.stringify({ outcome, ...counts })}, not ${JSON.stringify(expected)}`];
}
