import { requestOptions } from '@piecework/producer';
import {
  type Connection,
  ControlCommands,
  checkOption,
  checkOptions,
  DroppedError,
  EndedError,
  ExpiredError,
  encodeToleratedFailures,
  type GoesOn,
  InvalidOptionError,
  limitOption,
  NotFoundError,
  type OptionTable,
  option,
  Patience,
  type QueueCommands,
  QueueControlCommands,
  RequestCommands,
  type RequestOutcome,
  type Shards,
  type Told,
  type ToleratedFailures,
  tellOpen,
  tellOver,
  toleratedFailuresOption,
} from '@piecework/protocol';

/** What became of a cancelled request. */
export type Cancelled =
  /** Running sub-requests are told to end; it completes when the last of them has. */
  | { readonly status: 'cancelling' }
  /** It is complete, perhaps it was before, with whatever outcome. */
  | { readonly status: 'complete'; readonly outcome: RequestOutcome };

export interface UpdateOptions {
  /**
   * Greatest number in flight at once, from 1 to 1000000; null: no limit. A lowered one starts nothing until
   * so many have ended that there is room below it. @default as it is
   */
  readonly limit?: number | null | undefined;
  /** 0 is served first, 99 last. @default as it is */
  readonly priority?: number | undefined;
  /** How many sub-requests may fail in a request that succeeds, as at submission. @default as it is */
  readonly toleratedFailures?: ToleratedFailures | undefined;
}

const unset = ({ default: _, ...spec }: OptionTable[string]) => spec;

export const updateOptions: OptionTable = {
  limit: limitOption,
  priority: unset(requestOptions['priority'] as OptionTable[string]),
  toleratedFailures: unset(toleratedFailuresOption),
};

/** How often a call is repeated whose life of the id ended before it came. */
const TRIES = 5;

/**
 * What is done to one request while it runs, from any process. Each first changes the request's own
 * side; what the queue side does not learn from here, because this process dies, the agenda tells it.
 */
export class RequestControl {
  readonly #connection: Connection;
  readonly #queue: Shards;
  readonly #id: string;
  readonly #commands: ControlCommands;
  readonly #patience: Patience;

  /**
   * `queue`: where it is asked whether an id that is not there ever was · `forMs`: how long each call is
   * tried. @throws InvalidOptionError
   */
  constructor(connection: Connection, queue: Shards, id: string, forMs: number) {
    checkOption('id', id, option.name());
    this.#connection = connection;
    this.#queue = queue;
    this.#id = id;
    this.#commands = new ControlCommands(connection, id);
    this.#patience = new Patience(connection, id, { forMs });
  }

  async cancel(): Promise<Cancelled> {
    const request = new RequestCommands(this.#connection, this.#id);
    const { epoch } = this.#connection;
    const { reply, generation, queue } = await this.#onLife((life) => request.cancel(life));
    if (reply.verdict === 'complete') {
      const { outcome, spentAt } = reply;
      const over = { generation, outcome, spentAt };
      await tellOver(epoch, queue, request, over, (call) => this.#patience.call(call));
      return { status: 'complete', outcome: reply.outcome };
    }
    await this.#control(queue).tell('cancel', this.#id, generation);
    await this.#tellOpen(queue, generation, () => queue.note(this.#id, generation, 0));
    return { status: 'cancelling' };
  }

  async pause(): Promise<void> {
    const { reply } = await this.#onLife((life) => this.#commands.pause(life));
    if (reply.verdict !== 'paused') throw new EndedError(this.#id, reply.verdict);
  }

  async resume(): Promise<void> {
    await this.#goOn((life) => this.#commands.resume(life));
  }

  async update(options: UpdateOptions): Promise<void> {
    const changes = checkOptions<UpdateOptions>(updateOptions, options);
    if (Object.keys(changes).length === 0) {
      throw new InvalidOptionError('options', options, 'limit, priority or toleratedFailures');
    }
    const { toleratedFailures } = changes;
    const tolerated =
      toleratedFailures === undefined ? undefined : encodeToleratedFailures(toleratedFailures);
    await this.#goOn((life) =>
      this.#commands.update(life, { ...changes, toleratedFailures: tolerated }),
    );
  }

  async #goOn(change: (generation: number) => Promise<GoesOn>): Promise<void> {
    const { reply, generation, queue } = await this.#onLife(change);
    if (reply.verdict !== 'ok') throw new EndedError(this.#id, reply.verdict);
    const { mint, epoch, priority, due } = reply;
    const id = this.#id;
    if (mint > 0)
      await this.#tellOpen(queue, generation, () =>
        queue.push({ id, generation, mint, epoch, priority, due }),
      );
    // Whatever was marked of the queue's lists before may not hold any more.
    await this.#tellOpen(queue, generation, () => queue.note(id, generation, 0));
  }

  async #tellOpen(
    queue: QueueCommands,
    generation: number,
    tell: () => Promise<Told>,
  ): Promise<void> {
    const request = new RequestCommands(this.#connection, this.#id);
    await tellOpen(queue, request, generation, tell, (call) => this.#patience.call(call));
  }

  /** Does `call` to the life that there is now. @throws NotFoundError · ExpiredError · DroppedError */
  async #onLife<Reply extends { readonly verdict: string }>(
    call: (generation: number) => Promise<Reply | { readonly verdict: 'gone' }>,
  ): Promise<{
    reply: Exclude<Reply, { verdict: 'gone' }>;
    generation: number;
    queue: QueueCommands;
  }> {
    for (let i = 0; i < TRIES; i += 1) {
      const life = await this.#patience.call(() => this.#commands.life());
      if (!life || life.status === 'void') throw await this.#absent();
      if (life.status === 'dropped') throw new DroppedError(this.#id);
      const { generation } = life;
      const reply = await this.#patience.call(() => call(generation));
      if (reply.verdict === 'gone') continue;
      const queue = this.#queue.named(life.queue);
      return { reply: reply as Exclude<Reply, { verdict: 'gone' }>, generation, queue };
    }
    throw new NotFoundError(this.#id);
  }

  async #absent(): Promise<Error> {
    const { endedAt } = await this.#patience.call(() => this.#queue.whereabouts(this.#id));
    return endedAt === undefined ? new NotFoundError(this.#id) : new ExpiredError(this.#id);
  }

  #control(queue: QueueCommands): QueueControlCommands {
    return new QueueControlCommands(this.#connection, queue.keys.queue);
  }
}
