import {
  type Connection,
  checkOption,
  NotFoundError,
  option,
  QueueCommands,
  RequestCommands,
} from '@piecework/protocol';

/** What an operator does to requests, whoever submitted them. */
export class Admin {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Removes a request and everything of it, whatever its state; workers that run its sub-requests
   * abort them. A tombstone stays for five minutes, so that waiters learn what happened.
   * @throws NotFoundError · InvalidOptionError · ConnectionError
   */
  async drop(id: string): Promise<void> {
    checkOption('id', id, option.name());
    const dropped = await new RequestCommands(this.#connection, id).drop();
    if (dropped.verdict === 'gone') throw new NotFoundError(id);
    // Repeating a drop whose second half was cut off takes it up where it was.
    await new QueueCommands(this.#connection, dropped.queue).finish(
      id,
      dropped.generation,
      'dropped',
    );
  }
}
