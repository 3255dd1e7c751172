import { PieceworkError } from '@piecework/protocol';

/** The queue of ids was dropped, or the server lost it; one of the same name that was created later is another queue. */
export class NoQueueError extends PieceworkError {
  override readonly name = 'NoQueueError';
  readonly queue: string;

  constructor(queue: string) {
    super(
      `no queue of ids ${queue} is known: it was dropped, or the server may have lost it (a restart without its data, a failover); join it again`,
      { code: 'NO_QUEUE' },
    );
    this.queue = queue;
  }
}

/** A queue of ids of this name is there, with other options than were asked for. */
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
    super(`the queue of ids ${queue} has other options: ${said.join('; ')}`, {
      code: 'QUEUE_DIFFERS',
    });
    this.queue = queue;
    this.differs = differs;
  }
}
