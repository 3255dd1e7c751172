import { type IdQueueKeys, idQueueKeys } from '../contract/id-queue-keys.js';
import type { Connection } from '../redis/connection.js';
import { type Reply, run } from '../scripts/run-script.js';

/** What a joiner asks for; left out: what is there. */
export interface IdQueueTerms {
  readonly timeoutMs?: number | undefined;
  readonly unique?: boolean | undefined;
}

export type JoinedIdQueue = {
  readonly timeoutMs: number;
  readonly unique: boolean;
} & ({ readonly verdict: 'joined'; readonly life: string } | { readonly verdict: 'differs' });

/** A task in one hand: its number, which attempt this is, and when it was handed out. */
export interface IdTask {
  readonly number: number;
  readonly attempt: number;
  readonly id: string;
  /** Server time, in ms. */
  readonly at: number;
}

/** There is no queue of this life. */
export interface NoIdQueue {
  readonly verdict: 'gone';
}

export type PulledId =
  | ({ readonly verdict: 'ready' | 'timedout' } & IdTask)
  | { readonly verdict: 'processing'; readonly at: number }
  | { readonly verdict: 'none'; readonly at: number };

/** A task as it is reported: number and attempt. */
export type IdKey = Pick<IdTask, 'number' | 'attempt'>;

/** A failure that is kept. */
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
  /** Those that were asked for, the latest first. */
  readonly failed: readonly KeptIdFailure[];
}

/** What is done to a queue of ids. Hash slot of `{<name>}`. */
export class IdQueueCommands {
  readonly keys: IdQueueKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, name: string) {
    this.#connection = connection;
    this.keys = idQueueKeys(name);
  }

  /** Joins, or creates as `life`; `defaultMs` is the timeout of one that is created without. */
  async join(
    life: string,
    { timeoutMs, unique }: IdQueueTerms,
    defaultMs: number,
  ): Promise<JoinedIdQueue> {
    const asked = unique === undefined ? undefined : Number(unique);
    const args = { life, timeoutMs, unique: asked, defaultMs };
    const joined = await run(this.#connection.client, 'id-join', this.keys, args);
    return { ...joined, unique: joined.unique === 1 };
  }

  /**
   * Adds ids as chunk `number` of `sender`, at most 500. `first`: number of the first chunk of the same add;
   * 'gap': the server lost those behind `known`.
   */
  async add(
    life: string,
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
    const args = { life, sender, number, keepMs, first, ids };
    const reply = await run(this.#connection.client, 'id-add', this.keys, args);
    return reply.verdict === 'gap' ? { verdict: 'gap', known: reply.number } : reply;
  }

  /**
   * `drawn`: below 2^24, drawn anew for each pull. It goes into the attempts of what is handed out, so that a
   * number that is given once more, by a server that lost its last writes, makes another key.
   */
  pull(life: string, drawn = 0): Promise<PulledId | NoIdQueue> {
    const args = { life, first: 32 * drawn + 1 };
    return run(this.#connection.client, 'id-pull', this.keys, args);
  }

  resume(life: string, { number, attempt }: IdKey): Promise<PulledId | NoIdQueue> {
    const args = { life, number, attempt };
    return run(this.#connection.client, 'id-resume', this.keys, args);
  }

  /** Ends a task: as failed with a `failure`, else as succeeded. Answers whether that counted. */
  settle(
    life: string,
    { number, attempt }: IdKey,
    failure?: string,
  ): Promise<{ readonly verdict: 'counted' | 'late' } | NoIdQueue> {
    const kind = failure === undefined ? 's' : 'f';
    const args = { life, number, attempt, kind, message: failure ?? '' };
    return run(this.#connection.client, 'id-settle', this.keys, args);
  }

  /** Counts, and `count` failures from the `first` on; 0 is the latest. */
  inspect(life: string, first = 0, count = 0): Promise<InspectedIdQueue | NoIdQueue> {
    return run(this.#connection.client, 'id-inspect', this.keys, { life, first, count });
  }

  drop(life: string): Promise<Reply<'id-drop'>> {
    return run(this.#connection.client, 'id-drop', this.keys, { life });
  }
}
