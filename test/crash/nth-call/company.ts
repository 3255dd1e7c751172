import { setTimeout as sleep } from 'node:timers/promises';
import { type Connection, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import type { HandlerContext } from '@piecework/worker';
import { wrongAtEnd } from '../../cast/judge.js';
import { handled, noted } from '../../cast/roles/handler.js';
import { Runs } from '../../cast/runs.js';
import { stateOf } from '../../support/compact.js';
import { Log } from '../../support/flow.js';
import { freshName, type Scene, tickOnce } from '../../support/given.js';
import { faultsOf, type Picture, peek } from '../../support/peek.js';
import { Quiet } from './quiet.js';

/*
 * What all cases in which an n-th call goes wrong share: a queue of their own, requests that are judged in the end,
 * and time that passes only when nothing has moved for a moment. Then the scripts' clock goes ahead and somebody
 * ticks, as the rest of a fleet would.
 */

/** What moves when anything does, but for times. */
const MOVING = [
  ...['status', 'total', 'succeeded', 'failed', 'cancelled'],
  ...['granted', 'out', 'epoch'],
];

export class Company {
  readonly queue: string;
  readonly log = new Log();
  readonly runs = new Runs();
  protected readonly connection: Connection;
  protected readonly ids: string[] = [];
  protected readonly opened: AsyncDisposable[] = [];
  readonly #commands: QueueCommands;
  /** Further queues, as of a worker of several. */
  readonly #more: QueueCommands[] = [];

  constructor(connection: Connection, name: string) {
    this.connection = connection;
    this.queue = freshName(name);
    // One for all, which remembers the lanes that its replies named.
    this.#commands = new QueueCommands(connection, this.queue);
  }

  /** An id that is judged and dropped in the end. */
  id(name: string): string {
    const id = `${this.queue}.${name}`;
    this.ids.push(id);
    return id;
  }

  scene(id: string, generation = 0): Scene {
    const { connection } = this;
    const request = new RequestCommands(connection, id);
    return { id, generation, connection, queue: this.#commands, request };
  }

  picture(id: string): Promise<Picture> {
    return peek(this.scene(id));
  }

  /** A further queue, which is ticked like the first. */
  anotherQueue(): string {
    const name = `${this.queue}-${this.#more.length}`;
    this.#more.push(new QueueCommands(this.connection, name));
    return name;
  }

  protected get queues(): QueueCommands[] {
    return [this.#commands, ...this.#more];
  }

  /** Keeps an actor until the case is closed. */
  keep<Actor extends AsyncDisposable>(actor: Actor): Actor {
    this.opened.push(actor);
    return actor;
  }

  /** Answers with the payload, or throws if it is bad, and notes the run. */
  readonly handler = (payload: unknown, context: HandlerContext): Promise<unknown> =>
    noted(this.runs, context, () => this.answer(payload));

  protected answer(payload: unknown): Promise<unknown> {
    return handled(payload);
  }

  protected async tickAll(): Promise<void> {
    for (const queue of this.queues) await tickOnce({ ...this.scene(''), queue });
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
      const moving = JSON.stringify([await this.#states(...MOVING), this.runs.began]);
      if (await quiet.see(moving, onQuiet)) await this.tickAll();
    } while (working || !(await this.isOver()));
    await watched;
    await work;
  }

  #states(...fields: string[]): Promise<(string | null)[][]> {
    const { client } = this.connection;
    return Promise.all(
      this.ids.map(async (id) => {
        const state = await stateOf(client, `request:{${id}}`);
        return fields.map((field) => state[field] ?? null);
      }),
    );
  }

  protected async isOver(): Promise<boolean> {
    for (const { keys } of this.queues)
      if ((await this.connection.client.hlen(keys.open)) > 0) return false;
    const states = await this.#states('status');
    return states.every(([status]) => !['open', 'sealed', 'cancelling'].includes(status ?? ''));
  }

  /** What must hold of a request however it ended: its books, and each of its results. */
  protected wrongWith(id: string, picture: Picture): string[] {
    return [...faultsOf(picture), ...wrongAtEnd(id, picture, this.runs)];
  }

  /** What was logged as an error. */
  protected logged(): string[] {
    return this.log.lines
      .filter(({ level }) => level === 'error')
      .map(({ what, about }) => `logged: ${what}: ${String(about.err)}`);
  }

  /** All that is known, for the message when the case fails; `calls`: what the actor sent. */
  protected async storyOf(calls: readonly string[]): Promise<string> {
    const pictures = await Promise.all(this.ids.map((id) => this.picture(id)));
    const lines = this.log.lines.map(
      ({ level, what, about }) => `${level} ${what} ${about.err ?? ''}`,
    );
    return `${[...calls, ...lines].join('\n')}\n${JSON.stringify(pictures)}`;
  }
}
