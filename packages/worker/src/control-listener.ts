import { type PieceworkError, parseControl, Subscriber } from '@piecework/protocol';
import type { Shard } from './fetch/shard.js';
import type { WorkerContext } from './shared/worker-context.js';

/** How often the connection is asked for a sign of life (less often by a frugal worker), and how long an answer may take. */
const PING_EVERY_MS = 15_000;
const PING_MS = 5_000;

/**
 * Receives the notices for all workers of the queue: that a request was cancelled or dropped, that the queue was
 * paused or resumed, that a lane is in use. It has a connection of its own (in a cluster, for several shards, one to
 * each master that has any), which is built anew whenever it breaks. A notice only saves time: renewals, settles and
 * ticks answer the same.
 */
export class ControlListener {
  readonly #subscriber: Subscriber;
  readonly #shards: readonly Shard[];
  readonly #pingEveryMs: number;
  #pings: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    { connection, idleFactor, logger }: WorkerContext,
    shards: readonly Shard[],
    hooks: {
      readonly onRequest: (request: { id: string; generation: number }) => void;
      /** It was paused or resumed: its state has to be read. */
      readonly onQueue: (shard: Shard) => void;
      readonly onLane: (shard: Shard, priority: number) => void;
      /** Notices about it may have been missed until now. */
      readonly onMaybeMissed: (shard: Shard) => void;
    },
  ) {
    this.#shards = shards;
    this.#pingEveryMs = PING_EVERY_MS * idleFactor;
    const ofChannel = new Map(shards.map((shard) => [shard.queue.keys.control, shard]));
    const events = {
      onNotice: (channel: string, message: string) => {
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
        }
      },
      onError: (error: PieceworkError) => {
        logger.debug({ err: error }, 'control channel lost');
      },
    };
    this.#subscriber = new Subscriber(connection, events, 'piecework-control');
  }

  start(): void {
    if (this.#pings || this.#closed) return;
    for (const { queue } of this.#shards) this.#subscriber.add(queue.keys.control);
    this.#pings = setInterval(() => this.#subscriber.ping(PING_MS), this.#pingEveryMs);
    this.#pings.unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#pings);
    await this.#subscriber.close();
  }
}
