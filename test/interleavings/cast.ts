import { Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import { type Client, Connection, pause, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import type { HandlerContext, Worker, WorkerOptions } from '@piecework/worker';
import { Admin } from '../cast/calls/admin.js';
import { DEADLY, handled, noted, SLOW } from '../cast/roles/handler.js';
import { awaitEnd, type Notice } from '../cast/roles/waiter.js';
import { startUntilItWorks, workerOf } from '../cast/roles/worker.js';
import { Runs } from '../cast/runs.js';
import { apart } from '../support/apart.js';
import type { Scene } from '../support/given.js';
import { Actor } from './actor.js';
import { gatedClient } from './gated-client.js';
import { QUEUE, type Stage } from './stage.js';

/*
 * The real roles (test/cast/roles) on a stage, each in a process of its own, and what they were seen to do.
 */

/** How long a slow handler runs. Shorter than a lease, and than what arrives much later. */
const SLOW_MS = 24_000;

/** A handler that runs. */
interface Run {
  readonly actor: Actor;
  readonly id: string;
  readonly index: number;
  readonly context: HandlerContext;
}

/** What an actor has to do until it is done; `awaits`: a request whose completion it waits for. */
interface Errand {
  readonly actor: Actor;
  readonly awaits: string;
  done: boolean;
}

export class Cast {
  readonly #stage: Stage;
  readonly running = new Set<Run>();
  /** Whose worker has closed. */
  readonly closed = new Set<Actor>();
  /** All runs of handlers. */
  readonly runs = new Runs();
  /** What the waiters received. */
  readonly notices: Notice[] = [];
  /** Requests whose submission was acknowledged to a caller. */
  readonly submitted = new Set<string>();
  /** Requests that somebody dropped, both halves of it. */
  readonly dropped = new Set<string>();
  readonly actors: Actor[] = [];
  readonly #errands: Errand[] = [];
  readonly workers: { readonly actor: Actor; readonly slots: number }[] = [];
  /** Who began what: name of the actor, request and index. */
  readonly #began = new Set<string>();
  readonly #heirs = new Map<Actor, () => void>();

  constructor(stage: Stage) {
    this.#stage = stage;
    stage.onDeath.push((actor: Actor) => {
      this.crash(actor);
      for (const run of this.running) if (run.actor === actor) this.running.delete(run);
      this.#heirs.get(actor)?.();
    });
  }

  /** Whether everybody who lives is done with what he came for. */
  get done(): boolean {
    return this.#errands.every(({ actor, done }) => done || actor.dead);
  }

  /** What of a request runs in a process. */
  runsOf(actor: Actor, id: string): Run[] {
    return [...this.running].filter((run) => run.actor === actor && run.id === id);
  }

  /** Whether somebody still waits for the completion of a request. */
  awaits(id: string): boolean {
    return this.#errands.some(({ actor, awaits, done }) => awaits === id && !done && !actor.dead);
  }

  /**
   * A process ends, or stops, with what it began and Redis has no outcome of: what runs, and what ended
   * and was not reported yet.
   */
  crash(actor: Actor): void {
    const held = [...this.#stage.pictures].flatMap(([id, { pending }]) =>
      pending.filter(({ owner }) => owner === actor.name).map(({ index }) => ({ id, index })),
    );
    const began = ({ id, index }: { id: string; index: number }) =>
      this.#began.has(`${actor.name} ${id} ${index}`);
    const lost = held.filter(began);
    for (const one of held) {
      this.runs.of(one.id, one.index).isolated = lost.length === 1 && began(one);
    }
  }

  /** Forgets who began what and does not have it any more: it was given back, taken back or settled. */
  forget(): void {
    for (const { actor } of this.workers) {
      for (const [id, { pending }] of this.#stage.pictures) {
        const runs = this.runsOf(actor, id);
        const has = new Set([
          ...pending.filter(({ owner }) => owner === actor.name).map(({ index }) => index),
          ...runs.map(({ index }) => index),
        ]);
        const prefix = `${actor.name} ${id} `;
        for (const key of this.#began) {
          if (key.startsWith(prefix) && !has.has(Number(key.slice(prefix.length))))
            this.#began.delete(key);
        }
      }
    }
  }

  #actor(name: string, heir?: () => void): { actor: Actor; redis: ReturnType<typeof gatedClient> } {
    const actor = new Actor(name);
    this.actors.push(actor);
    if (heir) this.#heirs.set(actor, heir);
    const redis = gatedClient(this.#stage, actor);
    redis.status = 'ready';
    return { actor, redis };
  }

  #errand(actor: Actor, work: () => Promise<unknown>, awaits = ''): void {
    const errand: Errand = { actor, awaits, done: false };
    this.#errands.push(errand);
    const end = () => {
      errand.done = true;
      this.#stage.stirred += 1;
    };
    actor.run(() => void work().then(end, end));
  }

  /**
   * Submits, and does `onSubmitted` when a caller is told that it worked. When it dies, `heir` comes. `whole`: small
   * submissions in one call; otherwise by the separate calls, as where the sides are apart.
   */
  producer(
    name: string,
    submit: (producer: Producer) => Promise<{ id: string }>,
    {
      onSubmitted = () => {},
      heir,
      whole = false,
    }: { onSubmitted?: (id: string) => void; heir?: () => void; whole?: boolean } = {},
  ): void {
    const { actor, redis } = this.#actor(name, heir);
    const client = whole ? redis : apart(redis);
    this.#errand(actor, async () => {
      const { id } = await submit(new Producer({ redis: client, queue: QUEUE }));
      this.submitted.add(id);
      onSubmitted(id);
    });
  }

  /** Works until the end, for a task or for all. When it dies, another comes. */
  worker(name: string, options: Partial<WorkerOptions> = {}, task?: string): void {
    this.#worker(name, options, task);
  }

  /** Works, and closes at a moment that the scheduler chooses; then another comes. */
  leavingWorker(name: string, options: Partial<WorkerOptions> = {}): void {
    const { actor, close } = this.#worker(name, options);
    this.#errand(actor, async () => {
      await this.#chosen(actor, 'is told to close');
      await close();
      this.closed.add(actor);
      this.worker(`${name}'`, options);
    });
  }

  #worker(name: string, options: Partial<WorkerOptions>, task?: string) {
    const { actor, redis } = this.#actor(name, () => this.worker(`${name}'`, options, task));
    this.workers.push({ actor, slots: options.concurrency ?? 2 });
    const handler = this.#handlerOf(actor);
    const serves = task ? { handlers: [{ task, run: handler }] } : {};
    const { log } = this.#stage;
    let worker: Worker;
    let left = false;
    const open = () => {
      worker = workerOf({ redis, queue: QUEUE, log, handler }, { ...serves, ...options });
      actor.alias = [worker.id, name];
      return worker;
    };
    const failed = async () => {
      await pause(1_000);
      if (left) await new Promise<never>(() => {});
    };
    actor.run(() => void startUntilItWorks(open, failed));
    const close = () => {
      left = true;
      return worker.close({ timeoutMs: 1_000 });
    };
    return { actor, close };
  }

  #handlerOf(actor: Actor) {
    return async (payload: unknown, context: HandlerContext) => {
      const { requestId: id, index } = context;
      const run = { actor, id, index, context };
      this.running.add(run);
      this.#began.add(`${actor.name} ${id} ${index}`);
      const step = {
        actor,
        kind: 'handler',
        name: `ends ${id} ${index}`,
        readsOnly: true,
      } as const;
      const what = String(payload);
      return noted(this.runs, context, async () => {
        if (what.includes(SLOW)) await pause(SLOW_MS);
        await this.#stage.travel({ ...step, tags: [], send: async () => undefined });
        if (what.includes(DEADLY)) {
          this.#stage.kill(actor);
          return new Promise(() => {});
        }
        this.running.delete(run);
        return handled(payload);
      });
    };
  }

  /** Awaits a completion. When it dies, another does. */
  waiter(name: string, id: string): void {
    const { actor, redis } = this.#actor(name, () => this.waiter(`${name}'`, id));
    const wait = async () => {
      this.notices.push(await awaitEnd(new Notifier({ redis, queue: QUEUE }), id));
    };
    this.#errand(actor, wait, id);
  }

  /** Cancels the request at a moment that the scheduler chooses. */
  canceller(name: string, id: string): void {
    const { actor, redis } = this.#actor(name);
    this.#errand(actor, async () => {
      await this.#chosen(actor, 'comes to cancel');
      const scene = sceneOf(redis, id);
      const generation = (await scene.request.state())?.generation ?? 0;
      const admin = this.#admin();
      await admin.perform(admin.announce(scene, generation));
      await admin.perform(admin.cancel(scene, generation));
    });
  }

  /** Drops the request at a moment that the scheduler chooses, and does `then`. */
  dropper(name: string, id: string, then: () => void): void {
    const { actor, redis } = this.#actor(name);
    this.#errand(actor, async () => {
      await this.#chosen(actor, 'comes to drop');
      const scene = sceneOf(redis, id);
      const state = () => scene.request.state();
      const generation = (await state().catch(state))?.generation ?? 0;
      const admin = this.#admin();
      await admin.perform(admin.announce(scene, generation));
      const followed = await admin.perform(admin.drop(scene, generation));
      if (followed > 0) this.dropped.add(id);
      then();
    });
  }

  #admin(): Admin {
    const { pictures } = this.#stage;
    return new Admin({ scenes: [], pictures, runs: this.runs, time: 0, healing: false });
  }

  /** Comes at a moment that the scheduler chooses, or when nothing else is to do. */
  async #chosen(actor: Actor, name: string): Promise<void> {
    const step = { actor, kind: 'handler', name, tags: [], readsOnly: true } as const;
    await this.#stage.travel({ ...step, patient: true, send: async () => undefined });
  }
}

/** A request as one process reaches it. */
function sceneOf(redis: Client, id: string): Scene {
  const connection = Connection.open(redis);
  const queue = new QueueCommands(connection, QUEUE);
  return { id, generation: 0, connection, queue, request: new RequestCommands(connection, id) };
}
