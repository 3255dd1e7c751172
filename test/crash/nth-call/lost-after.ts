import { setTimeout as sleep } from 'node:timers/promises';
import { Producer } from '@piecework/producer';
import { Connection, QueueCommands, RequestCommands } from '@piecework/protocol';
import { type HandlerContext, Worker, type WorkerOptions } from '@piecework/worker';
import type { Redis } from 'ioredis';
import { Log } from '../../support/flow.js';
import { ended, type Forgetting, forgetting } from '../../support/forgetful-redis.js';
import { freshName, type Scene, tickOnce } from '../../support/given.js';
import { faultsOf, type Picture, peek } from '../../support/peek.js';
import { Quiet } from './quiet.js';

/*
 * One case of a server that loses its last writes behind the n-th call of one actor. The call is carried out,
 * and answered; with it goes what was written since `back` calls before, by whomever. All connections break.
 * Time passes only when nothing has moved for a moment, as in the n-th call loop.
 */

/** The payload whose handler throws until `good` is set. */
export const BAD = 'bad';

export class LostAfter {
  readonly queue = freshName('lost');
  readonly url: string;
  readonly actor: Forgetting;
  readonly #connection: Connection;
  readonly #commands: QueueCommands;
  readonly #log = new Log();
  readonly #opened: AsyncDisposable[] = [];
  readonly #ids: string[] = [];
  #runs = 0;
  good = false;

  /** `keeper`: a client of a server of the case's own, whose connection alone stays. */
  static async open(url: string, keeper: Redis, n: number, back: number): Promise<LostAfter> {
    return new LostAfter(url, keeper, await forgetting(url, keeper, n, back, 'told'));
  }

  private constructor(url: string, keeper: Redis, actor: Forgetting) {
    this.url = url;
    this.actor = actor;
    this.#connection = Connection.open(keeper);
    this.#commands = new QueueCommands(this.#connection, this.queue);
  }

  /** An id that is judged in the end. */
  id(name: string): string {
    const id = `${this.queue}.${name}`;
    this.#ids.push(id);
    return id;
  }

  keep<Actor extends AsyncDisposable>(actor: Actor): Actor {
    this.#opened.push(actor);
    return actor;
  }

  producer(how: 'forgotten' | 'well'): Producer {
    const redis = how === 'well' ? this.url : this.actor.client;
    return this.keep(new Producer({ redis, queue: this.queue }));
  }

  worker(how: 'forgotten' | 'well', options: Partial<WorkerOptions> = {}): Worker {
    const redis = how === 'well' ? this.url : this.actor.client;
    const logger = this.#log as never;
    const more = { handler: this.handler, concurrency: 2, maxBlockMs: 0, ...options };
    return this.keep(new Worker({ redis, queue: this.queue, logger, ...more }));
  }

  /** Starts it, as often as the loss breaks its first connection. */
  async start(worker: Worker): Promise<void> {
    for (let started = false; !started; ) {
      started = await worker.start().then(
        () => true,
        (error: { retryable?: boolean }) => {
          if (!error.retryable) throw error;
          return false;
        },
      );
    }
  }

  readonly handler = async (payload: unknown, _context: HandlerContext): Promise<unknown> => {
    this.#runs += 1;
    if (payload === BAD && !this.good) throw new Error('bad');
    return payload;
  };

  /** How often the actor called a script, or was about to. */
  callsOf(script: string): number {
    return this.actor.trips.filter((trip) => trip.split(' ')[1] === script).length;
  }

  #scene(id: string): Scene {
    const request = new RequestCommands(this.#connection, id);
    return { id, generation: 0, connection: this.#connection, queue: this.#commands, request };
  }

  picture(id: string): Promise<Picture> {
    return peek(this.#scene(id));
  }

  /** Lets time pass until `work` is done and everything has left the queue side. */
  async heal(work: Promise<unknown>): Promise<void> {
    let working = true;
    const stopped = () => {
      working = false;
    };
    work.then(stopped, stopped);
    const quiet = new Quiet();
    do {
      await sleep(3);
      if (await quiet.see(await this.#look())) await tickOnce(this.#scene(''));
    } while (working || !(await this.#isOver()));
    await work;
  }

  #states(...fields: string[]) {
    const { client } = this.#connection;
    return Promise.all(this.#ids.map((id) => client.hmget(`request:{${id}}`, ...fields)));
  }

  /** What moves when anything does, but for times. */
  async #look(): Promise<string> {
    const fields = ['status', 'total', 'succeeded', 'failed', 'granted', 'out', 'epoch'];
    return JSON.stringify([await this.#states(...fields), this.#runs]);
  }

  async #isOver(): Promise<boolean> {
    if ((await this.#connection.client.hlen(this.#commands.keys.open)) > 0) return false;
    const states = await this.#states('status');
    return states.every(([status]) => status === 'complete');
  }

  /** Resolves when all has ended. */
  async over(): Promise<void> {
    while (!(await this.#isOver())) await sleep(10);
  }

  /** Says what is wrong with how a request ended; empty when nothing is. */
  async judge(id: string, succeeded: number, failed = 0): Promise<string[]> {
    const picture = await this.picture(id);
    const { status, counts, results } = picture;
    const wrong = faultsOf(picture);
    if (status !== 'complete') wrong.push(`it is ${status}`);
    const all = { total: succeeded + failed, succeeded, failed, cancelled: 0 };
    for (const [name, n] of Object.entries(all)) {
      const found = counts[name as keyof typeof all];
      if (found !== n) wrong.push(`${name} is ${found}, not ${n}`);
    }
    const indexes = new Set(results.map(({ index }) => index));
    if (results.length !== all.total || indexes.size !== all.total)
      wrong.push(`${results.length} results of ${indexes.size} sub-requests`);
    return wrong.map((what) => `${id}: ${what}`);
  }

  /** Closes everything; says what went wrong unseen. */
  async close(): Promise<string[]> {
    for (const actor of this.#opened.reverse()) await actor[Symbol.asyncDispose]();
    await ended(this.actor);
    await this.#connection.close();
    return this.#log.lines
      .filter(({ level }) => level === 'error')
      .map(({ what, about }) => `logged: ${what}: ${String(about.err)}`);
  }

  async story(): Promise<string> {
    const pictures = await Promise.all(this.#ids.map((id) => this.picture(id)));
    const lines = this.#log.lines.map(({ level, what, about }) => `${level} ${what} ${about.err}`);
    return `${[...this.actor.trips, ...lines].join('\n')}\n${JSON.stringify(pictures)}`;
  }
}
