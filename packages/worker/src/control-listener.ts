import { type Connection, parseControl, Subscriber } from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Shard } from './fetch/shard.js';

/** How often the line is asked for a sign of life, and how long it has for one. */
const PING_EVERY_MS = 15_000;
const PING_MS = 5_000;

/**
 * Hears what is told to all workers of the queue: that a request was cancelled or dropped, that the
 * queue was paused or goes on, that a lane is used. On a connection of its own (in a cluster, for several
 * shards, on one to each master that has any), which is built anew whenever it breaks.
 * Nothing depends on it but time: renewals, settles and ticks learn the same.
 */
export class Control {
  readonly #subscriber: Subscriber;
  readonly #channels: readonly string[];
  #pings: NodeJS.Timeout | undefined;

  constructor(
    connection: Connection,
    shards: readonly Shard[],
    hooks: {
      readonly onRequest: (request: { id: string; generation: number }) => void;
      /** It was paused or resumed: its state says what holds now. */
      readonly onQueue: (shard: Shard) => void;
      readonly onLane: (shard: Shard, priority: number) => void;
      /** Something that was said of it may have been missed until now. */
      readonly onMaybeMissed: (shard: Shard) => void;
    },
    logger: Logger,
  ) {
    const ofChannel = new Map(shards.map((shard) => [shard.queue.keys.control, shard]));
    this.#channels = [...ofChannel.keys()];
    const events = {
      onNotice: (channel: string, message: string) => {
        const shard = ofChannel.get(channel);
        const said = parseControl(message);
        if (!said || !shard) return;
        if ('request' in said) hooks.onRequest(said.request);
        else if ('lane' in said) hooks.onLane(shard, said.lane);
        else hooks.onQueue(shard);
      },
      onMaybeMissed: (channels: readonly string[]) => {
        for (const channel of channels) {
          const shard = ofChannel.get(channel);
          if (shard) hooks.onMaybeMissed(shard);
        }
      },
      onError: (error: unknown) => logger.debug({ err: error }, 'control channel lost'),
    };
    this.#subscriber = new Subscriber(connection, events, 'piecework-control');
  }

  start(): void {
    if (this.#pings) return;
    for (const channel of this.#channels) this.#subscriber.add(channel);
    this.#pings = setInterval(() => this.#subscriber.ping(PING_MS), PING_EVERY_MS);
    this.#pings.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#pings);
    await this.#subscriber.close();
  }
}
