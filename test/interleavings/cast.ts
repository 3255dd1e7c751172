import { Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import { Connection, pause, QueueCommands, RequestCommands } from '@piecework/protocol';
import { type HandlerContext, Worker, type WorkerOptions } from '@piecework/worker';
import { Actor } from './actor.js';
import { gatedClient } from './gated-client.js';
import { QUEUE, type Stage } from './stage.js';

/*
 * The real roles on a stage, each in a process of its own, and what they were seen to do.
 */

/** Payloads of which this is a part: the handler throws, takes long, or ends its process. */
export const BAD = 'bad';
export const SLOW = 'slow';
export const DEADLY = 'deadly';
/** How long. Shorter than a lease, and than what arrives much later. */
const SLOW_MS = 24_000;

/** A handler that runs. */
interface Run {
  readonly actor: Actor;
  readonly id: string;
  readonly index: number;
  readonly context: HandlerContext;
}

/** What became of the runs of one sub-request. */
export interface Record {
  began: number;
  threw: number;
  /** Whether it ran, or was about to, and alone, when whoever had it last ended, or stood still. */
  crashedAlone: boolean;
}

/** What somebody came for; `awaits`: a request whose completion he waits for. */
interface Errand {
  readonly actor: Actor;
  readonly awaits: string;
  done: boolean;
}

/** What a waiter was told. */
export interface Told {
  readonly id: string;
  readonly status?: string;
  readonly counts?: object;
  readonly error?: Error;
}

export class Cast {
  readonly #stage: Stage;
  readonly running = new Set<Run>();
  readonly records = new Map<string, Record>();
  readonly told: Told[] = [];
  /** Requests whose submission a caller was told to have worked. */
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

  record(id: string, index: number): Record {
    const key = `${id} ${index}`;
    const known = this.records.get(key) ?? { began: 0, threw: 0, crashedAlone: false };
    this.records.set(key, known);
    return known;
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
      this.record(one.id, one.index).crashedAlone = lost.length === 1 && began(one);
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

  /** Submits, and does `onSubmitted` when a caller is told that it worked. When it dies, `heir` comes. */
  producer(
    name: string,
    submit: (producer: Producer) => Promise<{ id: string }>,
    {
      onSubmitted = () => {},
      heir,
    }: { onSubmitted?: (id: string) => void; heir?: () => void } = {},
  ): void {
    const { actor, redis } = this.#actor(name, heir);
    this.#errand(actor, async () => {
      const { id } = await submit(new Producer({ redis, queue: QUEUE }));
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
    const { actor, worker } = this.#worker(name, options);
    this.#errand(actor, async () => {
      await this.#chosen(actor, 'is told to close');
      await worker.close({ timeoutMs: 1_000 });
      this.worker(`${name}'`, options);
    });
  }

  #worker(name: string, options: Partial<WorkerOptions>, task?: string) {
    const { actor, redis } = this.#actor(name, () => this.worker(`${name}'`, options, task));
    this.workers.push({ actor, slots: options.concurrency ?? 2 });
    const handler = this.#handlerOf(actor);
    const worker = actor.run(
      () =>
        new Worker({
          redis,
          queue: QUEUE,
          logger: this.#stage.log as never,
          concurrency: 2,
          // Its thread would call at its own time.
          maxBlockMs: 0,
          ...(task ? { handlers: [{ task, run: handler }] } : { handler }),
          ...options,
        }),
    );
    actor.alias = [worker.id, name];
    actor.run(() => void this.#start(worker));
    return { actor, worker };
  }

  /** As a caller does: until it worked. */
  async #start(worker: Worker): Promise<void> {
    for (;;) {
      try {
        await worker.start();
        return;
      } catch {
        await pause(1_000);
      }
    }
  }

  #handlerOf(actor: Actor) {
    return async (payload: unknown, context: HandlerContext) => {
      const { requestId: id, index } = context;
      const run = { actor, id, index, context };
      this.running.add(run);
      const record = this.record(id, index);
      record.began += 1;
      this.#began.add(`${actor.name} ${id} ${index}`);
      const step = {
        actor,
        kind: 'handler',
        name: `ends ${id} ${index}`,
        readsOnly: true,
      } as const;
      const what = String(payload);
      if (what.includes(SLOW)) await pause(SLOW_MS);
      await this.#stage.travel({ ...step, tags: [], send: async () => undefined });
      if (what.includes(DEADLY)) {
        this.#stage.kill(actor);
        return new Promise(() => {});
      }
      this.running.delete(run);
      if (!what.includes(BAD)) return payload;
      record.threw += 1;
      throw new Error(BAD);
    };
  }

  /** Awaits a completion. When it dies, another does. */
  waiter(name: string, id: string): void {
    const { actor, redis } = this.#actor(name, () => this.waiter(`${name}'`, id));
    const wait = async () => {
      const notifier = new Notifier({ redis, queue: QUEUE });
      try {
        const { status, counts } = await notifier.completion(id);
        this.told.push({ id, status, counts });
      } catch (error) {
        this.told.push({ id, error: error as Error });
      }
    };
    this.#errand(actor, wait, id);
  }

  /** Cancels the request at a moment that the scheduler chooses. */
  canceller(name: string, id: string): void {
    const { actor, redis } = this.#actor(name);
    this.#errand(actor, async () => {
      await this.#chosen(actor, 'comes to cancel');
      const connection = Connection.open(redis);
      const request = new RequestCommands(connection, id);
      const queue = new QueueCommands(connection, QUEUE);
      const state = await request.state();
      const generation = state?.generation ?? 0;
      const cancelled = await request.cancel(generation).catch(() => request.cancel(generation));
      if (cancelled.verdict === 'complete') await queue.finish(id, generation, cancelled.outcome);
      else if (cancelled.verdict === 'cancelling') await queue.note(id, generation, 0);
    });
  }

  /** Drops the request at a moment that the scheduler chooses, and does `then`. */
  dropper(name: string, id: string, then: () => void): void {
    const { actor, redis } = this.#actor(name);
    this.#errand(actor, async () => {
      await this.#chosen(actor, 'comes to drop');
      const connection = Connection.open(redis);
      const request = new RequestCommands(connection, id);
      const generation = (await request.state().catch(() => request.state()))?.generation ?? 0;
      const drop = () => request.drop(generation);
      const dropped = await drop().catch(drop);
      if (dropped.verdict === 'dropped') {
        const queue = new QueueCommands(connection, dropped.queue);
        await queue.finish(id, dropped.generation, 'dropped').then(
          () => this.dropped.add(id),
          () => {},
        );
      }
      then();
    });
  }

  /** Comes at a moment that the scheduler chooses, or when nothing else is to do. */
  async #chosen(actor: Actor, name: string): Promise<void> {
    const step = { actor, kind: 'handler', name, tags: [], readsOnly: true } as const;
    await this.#stage.travel({ ...step, patient: true, send: async () => undefined });
  }
}
