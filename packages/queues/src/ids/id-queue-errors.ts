import { PieceworkError } from '@piecework/protocol';

/**
 * The id queue was dropped, or the server lost it. A queue of the same name that was created later is another queue.
 */
export class NoQueueError extends PieceworkError {
  override readonly name = 'NoQueueError';
  readonly queue: string;

  constructor(queue: string) {
    super(
      `no id queue ${queue} is known: it was dropped, or the server may have lost it (a restart without its data, a failover); join it again`,
      { code: 'NO_QUEUE' },
    );
    this.queue = queue;
  }
}

/** An id queue of this name exists, with options that differ from those given to `join`. */
export class QueueDiffersError extends PieceworkError {
  override readonly name = 'QueueDiffersError';
  readonly queue: string;
  /** Names of the options that differ. */
  readonly differs: readonly string[];

  constructor(
    queue: string,
    asked: Readonly<Record<string, unknown>>,
    there: Readonly<Record<string, unknown>>,
  ) {
    const differs = Object.keys(asked).filter(
      (name) => asked[name] !== undefined && asked[name] !== there[name],
    );
    const said = differs.map((name) => `${name} is ${there[name]}, not ${asked[name]}`);
    super(`the id queue ${queue} has other options: ${said.join('; ')}`, {
      code: 'QUEUE_DIFFERS',
    });
    this.queue = queue;
    this.differs = differs;
  }
}
