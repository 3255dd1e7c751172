import {
  type Granted,
  offerChannel,
  type PieceworkError,
  parseControl,
  parseGranted,
  ServerError,
  Subscriber,
} from '@piecework/protocol';
import type { Shard } from './fetch/shard.js';
import type { WorkerContext } from './shared/worker-context.js';

/** How often the connection is asked for a sign of life (less often by a frugal worker), and how long an answer may take. */
const PING_EVERY_MS = 15_000;
const PING_MS = 5_000;

/**
 * Receives the notices for all workers of the queue: that a request was cancelled or dropped, that the queue was
 * paused or resumed, that a lane is in use; and the requests that were entered by an offer of this worker. It has a
 * connection of its own (in a cluster, for several shards, one to each master that has any), which is built anew
 * whenever it breaks. A notice only saves time: renewals, settles and ticks answer the same, and `offer` what was
 * entered.
 */
export class ControlListener {
  readonly #subscriber: Subscriber;
  readonly #shards: readonly Shard[];
  readonly #pingEveryMs: number;
  /** On which requests come that were entered by an offer. */
  readonly #own: string;
  #pings: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    { id, connection, idleFactor, logger }: WorkerContext,
    shards: readonly Shard[],
    hooks: {
      readonly onRequest: (request: { id: string; generation: number }) => void;
      /** It was paused or resumed: its state has to be read. */
      readonly onQueue: (shard: Shard) => void;
      readonly onLane: (shard: Shard, priority: number) => void;
      /** A request was entered by an offer. */
      readonly onGranted: (granted: Granted) => void;
      /** Notices about it may have been missed until now. */
      readonly onMaybeMissed: (shard: Shard) => void;
    },
  ) {
    this.#shards = shards;
    this.#pingEveryMs = PING_EVERY_MS * idleFactor;
    this.#own = offerChannel(id);
    const ofChannel = new Map(shards.map((shard) => [shard.queue.keys.control, shard]));
    const onOwn = (message: string) => {
      const granted = parseGranted(message);
      if (granted) hooks.onGranted(granted);
    };
    const events = {
      onNotice: (channel: string, message: string) => {
        if (channel === this.#own) return onOwn(message);
        const shard = ofChannel.get(channel);
        const notice = parseControl(message);
        if (!notice || !shard) return;
        if ('request' in notice) hooks.onRequest(notice.request);
        else if ('lane' in notice) hooks.onLane(shard, notice.lane);
        else hooks.onQueue(shard);
      },
      onMaybeMissed: (channels: readonly string[]) => {
        for (const channel of channels) {
          const shard = ofChannel.get(channel);
          if (shard) hooks.onMaybeMissed(shard);
          // It is of the only shard.
          if (channel === this.#own) shards[0]?.offer.ask();
        }
      },
      onError: (error: PieceworkError) => {
        logger.debug({ err: error }, 'control channel lost');
        // It may lack the right, or be behind a proxy of a cluster. The other channels are subscribed in the same call.
        // Without its own, no offer of this worker is taken.
        const isRefused = error instanceof ServerError && !error.retryable;
        if (isRefused) this.#subscriber.remove(this.#own);
      },
    };
    this.#subscriber = new Subscriber(connection, events, 'piecework-control');
  }

  /** Whether it receives what is entered by an offer. */
  get listens(): boolean {
    return this.#subscriber.has(this.#own);
  }

  start(): void {
    if (this.#pings || this.#closed) return;
    for (const { queue } of this.#shards) this.#subscriber.add(queue.keys.control);
    if (this.#shards.some(({ offer }) => offer.isPossible)) this.#subscriber.add(this.#own);
    this.#pings = setInterval(() => this.#subscriber.ping(PING_MS), this.#pingEveryMs);
    this.#pings.unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#pings);
    await this.#subscriber.close();
  }
}
