import type { Payload } from './payloads.js';
import type { Tally } from './tally.js';

/** The same for every contender: Redis, number of slots, handler. */
export interface Setting {
  readonly host: string;
  readonly port: number;
  /** Queue name or key prefix; a new one for each session. */
  readonly queue: string;
  /** Slots of the one worker. */
  readonly concurrency: number;
  /** Limit of a request, if the contender has one: the number of slots, unless the run measures the limit. */
  readonly limit: number;
  /** A built checkout; its Piecework is measured. */
  readonly pieceworkRoot: string;
  /** The handler's work. */
  readonly handle: (payload: Payload) => Promise<number | Payload>;
}

/** One queue with its producer and its worker, opened in the measured process. */
export interface Session {
  /** Resolves when the worker waits for work. */
  startWorker(): Promise<void>;
  /** Resolves when Redis holds all of them. */
  submit(payloads: readonly Payload[]): Promise<void>;
  /** Waits until all submitted sub-requests have ended, and counts every result in the tally. */
  readResults(tally: Tally): Promise<void>;
  close(): Promise<void>;
}

export interface Contender {
  readonly title: string;
  /** How it is set up, and where its results are read from. */
  readonly configuration: string;
  open(setting: Setting): Promise<Session>;
}
