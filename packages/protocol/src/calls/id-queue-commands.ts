import { type IdQueueKeys, idQueueKeys } from '../contract/id-queue-keys.js';
import type { Connection } from '../redis/connection.js';
import { type Reply, run } from '../scripts/run-script.js';

/** What a process that joins asks for. Options left out match any queue. */
export interface IdQueueTerms {
  readonly timeoutMs?: number | undefined;
  readonly unique?: boolean | undefined;
}

export type JoinedIdQueue = {
  readonly timeoutMs: number;
  readonly unique: boolean;
} & (
  | { readonly verdict: 'joined'; readonly incarnation: string }
  | { readonly verdict: 'differs' }
);

/** An item that was pulled: its number, which attempt this is, and when it was pulled. */
export interface IdItem {
  readonly number: number;
  readonly attempt: number;
  readonly id: string;
  /** Server time, in ms. */
  readonly at: number;
}

/** The reply when this incarnation of the queue no longer exists. */
export interface NoIdQueue {
  readonly verdict: 'gone';
}

export type PulledId =
  | ({ readonly verdict: 'ready' | 'timedout' } & IdItem)
  | { readonly verdict: 'processing'; readonly at: number }
  | { readonly verdict: 'none'; readonly at: number };

/** An item as a process names it: number and attempt. */
export type IdKey = Pick<IdItem, 'number' | 'attempt'>;

/** A stored failure. */
export interface KeptIdFailure {
  readonly id: string;
  readonly key: string;
  readonly message: string;
  /** Server time, in ms. */
  readonly at: number;
}

export interface InspectedIdQueue {
  readonly verdict: 'ok';
  readonly pending: number;
  readonly running: number;
  readonly completed: number;
  readonly failures: number;
  /** The requested failures, the latest first. */
  readonly failed: readonly KeptIdFailure[];
  readonly timeoutMs: number;
  readonly unique: number;
  /** When the time of one that runs ends first, or ended; -1: none runs. */
  readonly next: number;
}

/** All calls of an id queue. Hash slot of `{<name>}`. */
export class IdQueueCommands {
  readonly keys: IdQueueKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, name: string) {
    this.#connection = connection;
    this.keys = idQueueKeys(name);
  }

  /** Joins the queue, or creates it as `incarnation`. `defaultMs`: the timeout when it is created without one. */
  async join(
    incarnation: string,
    { timeoutMs, unique }: IdQueueTerms,
    defaultMs: number,
  ): Promise<JoinedIdQueue> {
    const asked = unique === undefined ? undefined : Number(unique);
    const args = { incarnation, timeoutMs, unique: asked, defaultMs };
    const joined = await run(this.#connection.client, 'id-join', this.keys, args);
    return { ...joined, unique: joined.unique === 1 };
  }

  /**
   * Adds ids as chunk `number` of `sender`, at most 500. `first`: number of the first chunk of the same add. The
   * verdict 'gap': the server lost the chunks after `known`.
   */
  async add(
    incarnation: string,
    chunk: {
      readonly sender: string;
      readonly number: number;
      readonly keepMs: number;
      readonly first?: number;
    },
    ids: readonly string[],
  ): Promise<
    | { readonly verdict: 'ok'; readonly pending: number; readonly added: number }
    | { readonly verdict: 'gap'; readonly known: number }
    | NoIdQueue
  > {
    const { sender, number, keepMs, first = number } = chunk;
    const args = { incarnation, sender, number, keepMs, first, ids };
    const reply = await run(this.#connection.client, 'id-add', this.keys, args);
    return reply.verdict === 'gap' ? { verdict: 'gap', known: reply.number } : reply;
  }

  /**
   * Pulls one item. `drawn`: a random number below 2^24, new for each pull. The attempt number contains it. So when a
   * server lost its last writes and gives an item number out again, the key of the item is a different one.
   */
  pull(incarnation: string, drawn = 0): Promise<PulledId | NoIdQueue> {
    const args = { incarnation, first: 32 * drawn + 1 };
    return run(this.#connection.client, 'id-pull', this.keys, args);
  }

  resume(incarnation: string, { number, attempt }: IdKey): Promise<PulledId | NoIdQueue> {
    const args = { incarnation, number, attempt };
    return run(this.#connection.client, 'id-resume', this.keys, args);
  }

  /** Settles an item: as failed with a `failure`, else as succeeded. The reply says whether that counted. */
  settle(
    incarnation: string,
    { number, attempt }: IdKey,
    failure?: string,
  ): Promise<{ readonly verdict: 'counted' | 'late' } | NoIdQueue> {
    const kind = failure === undefined ? 's' : 'f';
    const args = { incarnation, number, attempt, kind, message: failure ?? '' };
    return run(this.#connection.client, 'id-settle', this.keys, args);
  }

  /**
   * Reads the counts, and `count` failures from place `first` on; 0 is the latest. `incarnation` '': of whichever queue
   * of this name is there.
   */
  inspect(incarnation: string, first = 0, count = 0): Promise<InspectedIdQueue | NoIdQueue> {
    return run(this.#connection.client, 'id-inspect', this.keys, { incarnation, first, count });
  }

  drop(incarnation: string): Promise<Reply<'id-drop'>> {
    return run(this.#connection.client, 'id-drop', this.keys, { incarnation });
  }
}
