import { type Connection, parseControl, type QueuePause, Subscriber } from '@piecework/protocol';
import type { Logger } from 'pino';

/** How often the line is asked for a sign of life, and how long it has for one. */
const PING_EVERY_MS = 15_000;
const PING_MS = 5_000;

/**
 * Hears what is told to all workers of the queue: that a request was cancelled or dropped, that the
 * queue was paused or goes on, that a lane is used. On a connection of its own, which is built anew whenever it breaks.
 * Nothing depends on it but time: renewals, settles and ticks learn the same.
 */
export class Control {
  readonly #subscriber: Subscriber;
  readonly #channel: string;
  #pings: NodeJS.Timeout | undefined;

  constructor(
    connection: Connection,
    channel: string,
    hooks: {
      readonly onRequest: (request: { id: string; generation: number }) => void;
      readonly onQueue: (pause: QueuePause) => void;
      readonly onLane: (priority: number) => void;
      /** It may have missed something until now. */
      readonly onMaybeMissed: () => void;
    },
    logger: Logger,
  ) {
    this.#channel = channel;
    const events = {
      onNotice: (_: string, message: string) => {
        const said = parseControl(message);
        if (said && 'request' in said) hooks.onRequest(said.request);
        else if (said && 'lane' in said) hooks.onLane(said.lane);
        else if (said) hooks.onQueue(said.queue);
      },
      onMaybeMissed: hooks.onMaybeMissed,
      onError: (error: unknown) => logger.debug({ err: error }, 'control channel lost'),
    };
    this.#subscriber = new Subscriber(connection, events, 'piecework-control');
  }

  start(): void {
    if (this.#pings) return;
    this.#subscriber.add(this.#channel);
    this.#pings = setInterval(() => this.#subscriber.ping(PING_MS), PING_EVERY_MS);
    this.#pings.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#pings);
    await this.#subscriber.close();
  }
}
