import { setTimeout as sleep } from 'node:timers/promises';
import { Producer } from '@piecework/producer';
import { Connection } from '@piecework/protocol';
import type { Worker, WorkerOptions } from '@piecework/worker';
import type { Redis } from 'ioredis';
import { startUntilItWorks, workerOf } from '../../cast/roles/worker.js';
import { ended, type Forgetting, forgetting } from '../../support/forgetful-redis.js';
import { Company } from './company.js';

/*
 * One case of a server that loses its last writes behind the n-th call of one actor. The call is carried out,
 * and answered; with it goes what was written since `back` calls before, by any client. All connections break.
 */

type How = 'forgotten' | 'well';

export class LostAfter extends Company {
  readonly url: string;
  readonly actor: Forgetting;
  /** Whether what is bad succeeds from here on. */
  good = false;

  /** `keeper`: a client of a server of the case's own, whose connection alone stays. */
  static async open(url: string, keeper: Redis, n: number, back: number): Promise<LostAfter> {
    return new LostAfter(url, keeper, await forgetting(url, keeper, n, back, 'told'));
  }

  private constructor(url: string, keeper: Redis, actor: Forgetting) {
    super(Connection.open(keeper), 'lost');
    this.url = url;
    this.actor = actor;
  }

  protected override async answer(payload: unknown): Promise<unknown> {
    return this.good ? payload : super.answer(payload);
  }

  producer(how: How): Producer {
    const redis = how === 'well' ? this.url : this.actor.client;
    return this.keep(new Producer({ redis, queue: this.queue }));
  }

  private worker(how: How, options: Partial<WorkerOptions> = {}): Worker {
    const { queue, log, handler } = this;
    const redis = how === 'well' ? this.url : this.actor.client;
    return this.keep(workerOf({ redis, queue, log, handler }, options));
  }

  /** Starts a worker, and another as often as the loss breaks its first connection. */
  start(how: How, options: Partial<WorkerOptions> = {}): Promise<Worker> {
    return startUntilItWorks(
      () => this.worker(how, options),
      (error) => {
        if (!error.retryable) throw error;
      },
    );
  }

  /** How often the actor called a script, or was about to. */
  callsOf(script: string): number {
    return this.actor.trips.filter((trip) => trip.split(' ')[1] === script).length;
  }

  /** Resolves when all has ended. */
  async over(): Promise<void> {
    while (!(await this.isOver())) await sleep(10);
  }

  /** Says what is wrong with how a request ended; empty when nothing is. */
  async judge(id: string, succeeded: number, failed = 0): Promise<string[]> {
    const picture = await this.picture(id);
    const wrong = this.wrongWith(id, picture);
    const all = { total: succeeded + failed, succeeded, failed, cancelled: 0 };
    for (const [name, n] of Object.entries(all)) {
      const found = picture.counts[name as keyof typeof all];
      if (found !== n) wrong.push(`${name} is ${found}, not ${n}`);
    }
    return wrong.map((what) => `${id}: ${what}`);
  }

  /** Closes everything; says what went wrong unseen. */
  async close(): Promise<string[]> {
    for (const actor of this.opened.reverse()) await actor[Symbol.asyncDispose]();
    await ended(this.actor);
    await this.connection.close();
    return this.logged();
  }

  story(): Promise<string> {
    return this.storyOf(this.actor.trips);
  }
}
