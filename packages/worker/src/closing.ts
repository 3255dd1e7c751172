import { type Connection, pause, within } from '@piecework/protocol';
import type { ControlListener } from './control-listener.js';
import type { Dispatcher } from './dispatcher.js';
import type { Shard } from './fetch/shard.js';
import type { Heartbeat } from './lease/heartbeat.js';
import type { WorkerContext } from './shared/worker-context.js';

/** How long a close may take beyond its timeout to give back what has not finished. */
const GIVE_BACK_MS = 5_000;
/** The same when the connection is down. */
const UNREACHABLE_MS = 500;
/** Handlers may clean up after their abort in the last quarter of a close, but no longer than this. */
const CLEAN_UP_MS = 1_000;

interface Parts {
  readonly context: WorkerContext;
  readonly shards: readonly Shard[];
  readonly dispatcher: Dispatcher;
  readonly heartbeat: Heartbeat;
  readonly control: ControlListener;
}

/** The steps in which a worker closes; docs/architecture.md lists them in their order. */
export class Closing {
  readonly #parts: Parts;
  readonly #context: WorkerContext;
  readonly #connection: Connection;
  /** Whether a call of the close got no answer. */
  #hangs = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#context = parts.context;
    this.#connection = parts.context.connection;
  }

  /** Takes no more tokens; those that still come are put out again. */
  async stopTaking(): Promise<void> {
    const { shards, dispatcher } = this.#parts;
    for (const session of dispatcher.sessions) session.leave();
    await Promise.all(shards.map(({ intake }) => intake.close()));
    this.#context.unblocking.close();
  }

  /** Waits up to `timeoutMs` for handlers, then aborts those that are left and gives their work back. */
  async drain(timeoutMs: number): Promise<void> {
    const { dispatcher } = this.#parts;
    const cleanUpMs = Math.min(CLEAN_UP_MS, timeoutMs / 4);
    await this.#drained(timeoutMs - cleanUpMs);
    const aborts = dispatcher.size > 0;
    const { running } = this.#context;
    if (running > 0) {
      // Their ids alone, as the commands take them.
      const ids = [...dispatcher.names].map((name) => name.replace(/~\d+$/, ''));
      const about = { running, requests: ids.slice(0, 10) };
      this.#context.logger.warn(about, 'handlers did not end in time; their work goes to others');
    }
    const end = performance.now() + cleanUpMs;
    for (const session of dispatcher.sessions) session.abandon();
    const reachable = this.#connection.client.status === 'ready';
    await this.#drained(reachable ? GIVE_BACK_MS : UNREACHABLE_MS);
    // cure: a handler has time after its abort
    while (aborts && this.#context.running > 0 && performance.now() < end) await pause(5);
  }

  /** Closes everything that runs beside the sessions. From now on no call is sent again. */
  async closeParts(): Promise<void> {
    const { heartbeat, control, context } = this.#parts;
    heartbeat.close();
    await this.within(control.close());
    await context.renewal.close();
    context.ended = true;
    context.stalls.close();
    context.flood.close();
    await this.within(this.#ofAllShards((shard) => shard.close()));
  }

  /** Stores the last errors and removes the worker from the registry. The error of a start that failed says enough. */
  async deregister(isRegistered: boolean, hasStarted: boolean): Promise<void> {
    // Before the worker is removed: the last one that leaves a queue deletes its errors.
    await this.within(this.#ofAllShards(({ errors }) => errors.close()));
    if (!isRegistered) return;
    const { id, logger } = this.#context;
    const removed = this.#ofAllShards((shard) => shard.queue.deregister(id, shard.info()));
    if (!(await this.within(removed)) && hasStarted)
      logger.warn('the registry forgets this worker by itself');
  }

  /** A connection that was passed in is left open: closing it does nothing. */
  async closeConnection(): Promise<void> {
    if (!(await this.within(this.#connection.close()))) this.#connection.cut();
  }

  /** Whether `work` succeeded in time. It gets little time when the server cannot be reached, or hangs. */
  async within(work: Promise<unknown>): Promise<boolean> {
    const reachable = this.#connection.client.status === 'ready' && !this.#hangs;
    const done = work.then(
      () => true,
      () => false,
    );
    const fallback = () => {
      this.#hangs = true;
      return false;
    };
    return within(reachable ? GIVE_BACK_MS : UNREACHABLE_MS, done, fallback);
  }

  /** Resolves when `work` is done for each shard; a failure for one does not delay the others. */
  async #ofAllShards(work: (shard: Shard) => Promise<void>): Promise<void> {
    const done = await Promise.allSettled(this.#parts.shards.map(work));
    for (const one of done) if (one.status === 'rejected') throw one.reason;
  }

  /** Waits until no session is left and no call is under way. */
  async #drained(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    const isBusy = () => this.#parts.dispatcher.size > 0 || !this.#context.settled;
    while (isBusy() && performance.now() < end) await pause(5);
  }
}
