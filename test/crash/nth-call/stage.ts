import { setTimeout as sleep } from 'node:timers/promises';
import { Notifier, type NotifierOptions } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import { type Connection, QueueCommands, RequestCommands } from '@piecework/protocol';
import { type HandlerContext, Worker, type WorkerOptions } from '@piecework/worker';
import { Admin, DelayedTasks } from 'piecework';
import { clockOffset, moveClock } from '../../support/clock.js';
import { FaultyClients as Clients, type FaultyClients } from '../../support/faulty-client.js';
import { Log, type RedisAddress } from '../../support/flow.js';
import { freshName, PRODUCER, type Scene, tickOnce } from '../../support/given.js';
import { keysOf } from '../../support/leaks.js';
import { faultsOf, type Picture, peek } from '../../support/peek.js';
import { until } from '../../support/until.js';
import { Quiet } from './quiet.js';

/*
 * One case of the n-th call loop: a queue of its own, one actor whose clients are faulty, and others
 * that are well. Time passes only when nothing has moved for a moment: then the scripts' clock goes
 * ahead and somebody ticks, as the rest of a fleet would.
 */

/** The payload whose handler throws. */
export const BAD = 'bad';
/** Payloads of `n` items; the last but one is bad. */
export const payloads = (n: number): string[] =>
  Array.from({ length: n }, (_, i) => (i === n - 2 ? BAD : `item ${i}`));

/** Appends encoded payloads to a request and pushes its tokens. */
export async function fill(scene: Scene, items: readonly string[]): Promise<void> {
  const { id, generation, queue, request } = scene;
  const encoded = items.map((item) => JSON.stringify(item));
  const appended = await request.append(generation, PRODUCER, 0, encoded);
  if (appended.verdict !== 'ok') throw new Error(`append: ${appended.verdict}`);
  await queue.push({ id, generation, ...appended });
}

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

export class Stage {
  readonly queue = freshName('nth');
  readonly faults: FaultyClients;
  readonly log = new Log();
  readonly #address: RedisAddress;
  readonly #connection: Connection;
  #queueCommands: QueueCommands | undefined;
  /** Further queues, as of a worker of several. */
  readonly #more: QueueCommands[] = [];
  readonly #well = new Clients();
  readonly #opened: AsyncDisposable[] = [];
  readonly #coming: Promise<unknown>[] = [];
  readonly #ids: string[] = [];
  /** Set when everything is over: whoever ends now is not replaced. */
  closing = false;
  /** What handlers ran: id and index. */
  readonly #ran = new Set<string>();
  #runs = 0;

  constructor(address: RedisAddress, connection: Connection, faults: FaultyClients) {
    this.#address = address;
    this.#connection = connection;
    this.faults = faults;
  }

  /** An id that is judged and dropped in the end. */
  id(name: string): string {
    const id = `${this.queue}.${name}`;
    this.#ids.push(id);
    return id;
  }

  scene(id: string, generation = 0): Scene {
    const connection = this.#connection;
    // One for all, which remembers the lanes that it was told of.
    this.#queueCommands ??= new QueueCommands(connection, this.queue);
    const queue = this.#queueCommands;
    return { id, generation, connection, queue, request: new RequestCommands(connection, id) };
  }

  /** A further queue, looked after like the first. */
  anotherQueue(): string {
    const name = `${this.queue}-${this.#more.length}`;
    this.#more.push(new QueueCommands(this.#connection, name));
    return name;
  }

  get #queues(): QueueCommands[] {
    return [this.scene('').queue, ...this.#more];
  }

  async #tickAll(): Promise<void> {
    const scene = this.scene('');
    for (const queue of this.#queues) await tickOnce({ ...scene, queue });
  }

  client(how: 'faulty' | 'well') {
    return (how === 'faulty' ? this.faults : this.#well).open(this.#address);
  }

  async producer(how: 'faulty' | 'well'): Promise<Producer> {
    return this.#keep(new Producer({ redis: await this.client(how), queue: this.queue }));
  }

  async tasks(how: 'faulty' | 'well', moves: readonly string[] = []): Promise<DelayedTasks> {
    return this.#keep(new DelayedTasks({ redis: await this.client(how), moves }));
  }

  async admin(how: 'faulty' | 'well'): Promise<Admin> {
    return this.#keep(new Admin({ redis: await this.client(how), queue: this.queue }));
  }

  async notifier(
    how: 'faulty' | 'well',
    options: Partial<NotifierOptions> = {},
  ): Promise<Notifier> {
    const redis = await this.client(how);
    return this.#keep(new Notifier({ redis, queue: this.queue, ...options }));
  }

  /** A worker that is not started. Its handler throws at what is bad. */
  async worker(how: 'faulty' | 'well', options: Partial<WorkerOptions> = {}): Promise<Worker> {
    const handler = this.handler;
    return this.#keep(
      new Worker({
        redis: await this.client(how),
        queue: this.queue,
        logger: this.log as never,
        concurrency: 2,
        // Its thread calls by a connection of its own, at its own time, and outlives an end without a word.
        maxBlockMs: 0,
        ...(options.handlers ? {} : { handler }),
        ...options,
      }),
    );
  }

  /** Starts the faulty one, as a caller does: until it worked, or its process ended. */
  async start(worker: { start(): Promise<unknown> }): Promise<void> {
    for (let started = false; !started && !this.faults.dead; ) {
      const starting = worker.start().then(
        () => true,
        // The one call that went wrong.
        () => false,
      );
      started = await Promise.race([starting, this.faults.died.then(() => false)]);
    }
  }

  readonly handler = async (payload: unknown, { requestId, index }: HandlerContext) => {
    this.#ran.add(`${requestId} ${index}`);
    this.#runs += 1;
    if (payload === BAD) throw new Error('bad');
    return payload;
  };

  /** Others who come, in their own time: not to be closed before they are there. */
  comes(coming: Promise<unknown>): void {
    coming.catch(() => {});
    this.#coming.push(coming);
  }

  #keep<T extends AsyncDisposable>(actor: T): T {
    this.#opened.push(actor);
    return actor;
  }

  /** Lets time pass until `work` is done and everything has left the queue side. */
  async heal(
    work: Promise<unknown>,
    onQuiet: () => Promise<unknown> = async () => {},
  ): Promise<void> {
    let working = true;
    const stopped = () => {
      working = false;
    };
    const watched = work.then(stopped, stopped);
    const quiet = new Quiet();
    do {
      await sleep(3);
      if (await quiet.see(await this.#look(), onQuiet)) await this.#tickAll();
    } while (working || !(await this.#isOver()));
    await watched;
    await work;
  }

  /** What moves when anything does, but for times. */
  async #look(): Promise<string> {
    const fields = [
      'status',
      'total',
      'succeeded',
      'failed',
      'cancelled',
      'granted',
      'out',
      'epoch',
    ];
    const states = await Promise.all(
      this.#ids.map((id) => this.#connection.client.hmget(`request:{${id}}`, ...fields)),
    );
    return JSON.stringify([states, this.#runs]);
  }

  async #isOver(): Promise<boolean> {
    for (const { keys } of this.#queues)
      if ((await this.#connection.client.hlen(keys.open)) > 0) return false;
    const states = await Promise.all(
      this.#ids.map((id) => this.#connection.client.hget(`request:{${id}}`, 'status')),
    );
    return states.every((status) => !['open', 'sealed', 'cancelling'].includes(status ?? ''));
  }

  /** Says what is wrong with how a request ended; empty when nothing is. */
  async judge(id: string, expected: Expected): Promise<string[]> {
    const picture = await peek(this.scene(id));
    const { status, outcome, counts, results } = picture;
    if (status === 'none' || status === 'void') {
      return expected.orNothing ? [] : [`${id} is ${status}`];
    }
    const wrong = faultsOf(picture);
    if (status !== 'complete') wrong.push(`${id} is ${status}`);
    for (const { index } of results) {
      if (!this.#ran.has(`${id} ${index}`)) wrong.push(`${index} has a result and never ran`);
    }
    const kept = picture.fields['results'] === 'discard' ? 0 : counts.succeeded;
    const recorded = [kept + counts.failed, results.length];
    if (recorded[0] !== recorded[1]) wrong.push(`${recorded[1]} results of ${recorded[0]}`);
    return [...wrong, ...countsWrong(expected, outcome, counts)].map((what) => `${id}: ${what}`);
  }

  /** Closes everything; says what is left, on either side of the network. */
  async close(): Promise<string[]> {
    this.closing = true;
    // One that is still connecting is known to nobody, and would stay.
    const came = await Promise.allSettled(this.#coming);
    const failed = came.filter((one) => one.status === 'rejected');
    const closing = this.#opened.reverse().map((actor) => {
      if (actor instanceof Worker || actor instanceof DelayedTasks)
        return actor.close({ timeoutMs: this.faults.dead ? 0 : 5_000 });
      const closed = actor[Symbol.asyncDispose]();
      // Of a process that has ended nobody hears what a close could not send.
      return this.faults.dead ? closed.then(undefined, () => {}) : closed;
    });
    await Promise.all(closing);
    this.faults.end();
    this.#well.end();
    await until(() => this.faults.left + this.#well.left === 0, {
      what: 'no connection is left',
    });
    const wrong = this.log.lines
      .filter(({ level }) => level === 'error')
      .map(({ what, about }) => `logged: ${what}: ${String(about.err)}`);
    wrong.push(...failed.map(({ reason }) => `did not come: ${reason}`));
    return [...wrong, ...(await this.#sweep())];
  }

  /** Drops all; what is left then, but for tombstones, is too much. */
  async #sweep(): Promise<string[]> {
    // A worker that went without a word is forgotten, and the next one that goes sweeps up.
    moveClock(61_000);
    await this.#tickAll();
    for (const id of this.#ids) {
      const dropped = await this.scene(id).request.drop();
      if (dropped.verdict !== 'dropped') continue;
      for (const queue of this.#queues) await queue.finish(id, dropped.generation, 'dropped');
    }
    for (const queue of this.#queues) await queue.depart('nobody');
    const { client } = this.#connection;
    const wrong: string[] = [];
    for (const key of await keysOf(client, this.queue, ...this.#ids)) {
      const status = key.startsWith('request:') ? await client.hget(key, 'status') : '';
      if (status !== 'dropped' && status !== 'void') wrong.push(`${key} is left`);
      else if ((await client.pttl(key)) < 0) wrong.push(`the tombstone ${key} stays for ever`);
      await client.unlink(key);
    }
    return wrong;
  }

  /** All that is known, for the message when the case fails. */
  async story(): Promise<string> {
    const pictures = await Promise.all(this.#ids.map((id) => peek(this.scene(id))));
    const lines = this.log.lines.map(
      ({ level, what, about }) => `${level} ${what} ${about.err ?? ''}`,
    );
    const told = [...this.faults.log, ...lines, `clock +${clockOffset()}`];
    return `${told.join('\n')}\n${JSON.stringify(pictures)}`;
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
