import type { Payload } from './payloads.js';
import type { Tally } from './tally.js';

/** What every contender is given: the same Redis, the same room, the same handler. */
export interface Setting {
  readonly host: string;
  readonly port: number;
  /** Queue name or key prefix; a new one for each session. */
  readonly queue: string;
  /** Slots of the one worker. */
  readonly concurrency: number;
  /** Where a request has one: as many, unless the run is about it. */
  readonly limit: number;
  /** Checkout whose Piecework runs, built. */
  readonly pieceworkRoot: string;
  /** The handler's work. */
  readonly handle: (payload: Payload) => Promise<number>;
}

/** One queue with its producer and its worker, opened in the measured process. */
export interface Session {
  /** Resolves when the worker waits for work. */
  startWorker(): Promise<void>;
  /** Resolves when Redis holds all of them. */
  submit(payloads: readonly Payload[]): Promise<void>;
  /** Waits for the end of what was submitted and notes every result that it reads. */
  readResults(tally: Tally): Promise<void>;
  close(): Promise<void>;
}

export interface Contender {
  readonly title: string;
  /** How it is set up, and where its results are read from. */
  readonly configuration: string;
  open(setting: Setting): Promise<Session>;
}
