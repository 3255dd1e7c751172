import { decodeError, ERRORS_MAX, type QueueError, type QueueErrors } from '@piecework/protocol';
import type { Logger } from 'pino';

/** For how long errors are gathered, in ms. */
const GATHER_MS = 1_000;

interface Noted {
  readonly at: number;
  readonly requestId: string;
  readonly index: number;
  readonly attempt: number;
  readonly text: string;
}

/**
 * Stores attempts that failed in the error log of the queue: once a second, and the last hundred at most. Nothing
 * waits for it; an error that gets lost here is stored with its sub-request all the same.
 */
export class ErrorLog {
  readonly #errors: Pick<QueueErrors, 'note'>;
  readonly #worker: string;
  readonly #logger: Logger;
  #noted: Noted[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(errors: Pick<QueueErrors, 'note'>, worker: string, logger: Logger) {
    this.#errors = errors;
    this.#worker = worker;
    this.#logger = logger;
  }

  /** `text`: the error as it is settled. */
  note(
    { requestId, index, attempt }: Pick<Noted, 'requestId' | 'index' | 'attempt'>,
    text: string,
  ): void {
    this.#noted.push({ at: Date.now(), requestId, index, attempt, text });
    if (this.#noted.length >= 2 * ERRORS_MAX) this.#noted = this.#noted.slice(-ERRORS_MAX);
    this.#timer ??= setTimeout(() => void this.flush(), GATHER_MS).unref();
  }

  /** Sends what is left. Never rejects. */
  close(): Promise<void> {
    return this.flush();
  }

  /** Sends what was gathered. Never rejects. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const errors = this.#noted
      .splice(0)
      .slice(-ERRORS_MAX)
      .map((noted) => this.#errorOf(noted));
    try {
      await this.#errors.note(errors);
    } catch (error) {
      this.#logger.warn(
        { err: error, errors: errors.length },
        'errors were not stored in the log of the queue',
      );
    }
  }

  #errorOf({ text, ...noted }: Noted): QueueError {
    const { name, message } = decodeError(text);
    return { ...noted, worker: this.#worker, name, message };
  }
}
