import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Connection,
  type OptionTable,
  option,
  type Redis,
  readFields,
  requestKeys,
  shape,
} from '@piecework/protocol';
import { type TaskHandler, Worker } from '@piecework/worker';
import type { CompletionOutcome, Failure, RequestDetails, RequestHandle } from 'piecework';
import { pino } from 'pino';
import { RequestFailuresError, StuckError } from './drain-errors.js';
import type { TestClock } from './test-clock.js';

export interface DrainOptions {
  /** Run by a worker that is closed when the request has ended. @default none: your own workers run */
  readonly handlers?: readonly TaskHandler[] | undefined;
  /** How long the end may take, in ms of real time. @default 10000 */
  readonly timeoutMs?: number | undefined;
}

export const drainOptions: OptionTable = {
  handlers: option.custom(
    shape.array(shape.object({ task: shape.text(0, 128), run: shape.callable }), 1),
    '[defineTask(name).handler(fn), …], an array',
  ),
  timeoutMs: option.ms(1, 3_600_000, 10_000),
};

/** Between two looks at the request, in ms. */
const LOOK_MS = 5;
/** After so many looks at which the request waits for somebody else, nobody comes. */
const LOOKS = 40;
const NOBODY_COMES = new Set(['resume', 'queue', 'worker', 'task']);
/** The most failures that an error lists. */
const LISTED = 20;

export interface DrainPlace {
  readonly connection: Connection;
  readonly clock: TestClock;
  readonly redis: string;
}

/** One request on the way to its end. */
export class Drain {
  readonly #place: DrainPlace;
  readonly #request: RequestHandle;
  readonly #options: DrainOptions & { readonly timeoutMs: number };

  constructor(
    place: DrainPlace,
    request: RequestHandle,
    options: DrainOptions & { readonly timeoutMs: number },
  ) {
    this.#place = place;
    this.#request = request;
    this.#options = options;
  }

  async run(): Promise<CompletionOutcome> {
    const worker = await this.#worker();
    try {
      await this.#end();
    } finally {
      await worker?.close({ timeoutMs: 0 });
    }
    const outcome = await this.#request.completion();
    if (outcome.status === 'succeeded') return outcome;
    const failures: Failure[] = [];
    for await (const failure of this.#request.failures()) {
      failures.push(failure);
      if (failures.length === LISTED) break;
    }
    throw new RequestFailuresError(outcome, failures);
  }

  async #worker(): Promise<Worker | undefined> {
    const { handlers } = this.#options;
    if (!handlers) return undefined;
    await this.#request.status();
    const keys = requestKeys(this.#request.id);
    const { queue } = await readFields(this.#place.connection.client, keys, ['queue']);
    const worker = new Worker({
      redis: this.#place.redis,
      queue: queue || undefined,
      handlers,
      // Outcomes are recorded at once; the renewal thread would go by the clock of the server.
      ...{ settleDelayMs: 0, maxBlockMs: 0 },
      // The error of the drain lists what failed.
      logger: pino({ level: 'silent' }),
    });
    return worker.start();
  }

  async #end(): Promise<void> {
    const endMs = performance.now() + this.#options.timeoutMs;
    let looks = 0;
    for (;;) {
      const status = await this.#request.status();
      if (status.status === 'complete') return;
      const blocked = NOBODY_COMES.has(status.waitingFor ?? '');
      looks = blocked ? looks + 1 : 0;
      const late = performance.now() >= endMs;
      if (late || looks === LOOKS) throw new StuckError(status, late ? this.#options.timeoutMs : 0);
      const waitMs = blocked ? undefined : await this.#onlyTimeIsMissing(status);
      if (waitMs === undefined) await sleep(LOOK_MS);
      else await this.#place.clock.advance(waitMs);
    }
  }

  /** How long the request waits for nothing but a time, in ms. */
  async #onlyTimeIsMissing({ counts, heldUntil }: RequestDetails): Promise<number | undefined> {
    const { ready, inFlight, delayed } = counts;
    if (inFlight > 0) return undefined;
    const now = await this.#place.clock.now();
    if (heldUntil !== undefined && heldUntil > now) return heldUntil - now;
    if (ready > 0 || delayed === 0) return undefined;
    const { due } = requestKeys(this.#request.id);
    const [, at] = await this.#client.zrange(due, '0', '0', 'WITHSCORES');
    return at === undefined ? undefined : Math.max(0, Number(at) - now);
  }

  get #client(): Redis {
    return this.#place.connection.client as Redis;
  }
}
