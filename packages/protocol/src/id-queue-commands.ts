import type { Connection } from './connection.js';
import { type IdQueueKeys, idQueueKeys } from './id-queue-keys.js';
import { type Argument, runScript } from './run-script.js';
import type { ScriptName } from './scripts.generated.js';

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

  #run(
    script: ScriptName,
    keys: readonly Exclude<keyof IdQueueKeys, 'name'>[],
    args: readonly Argument[],
  ): Promise<unknown[]> {
    const named = keys.map((key) => this.keys[key]);
    return runScript(this.#connection.client, script, named, args);
  }

  /** Joins, or creates as `life`; `defaultMs` is the timeout of one that is created without. */
  async join(
    life: string,
    { timeoutMs, unique }: IdQueueTerms,
    defaultMs: number,
  ): Promise<JoinedIdQueue> {
    const asked = unique === undefined ? '' : Number(unique);
    const reply = await this.#run('id-join', ['state'], [life, timeoutMs ?? '', asked, defaultMs]);
    const [verdict, ...rest] = reply as string[];
    const terms = (ms: unknown, one: unknown) => ({ timeoutMs: Number(ms), unique: one === '1' });
    if (verdict === 'differs') return { verdict, ...terms(rest[0], rest[1]) };
    return { verdict: 'joined', life: rest[0] as string, ...terms(rest[1], rest[2]) };
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
    const keys = ['state', 'pending', 'known', 'senders'] as const;
    const reply = await this.#run('id-add', keys, [life, sender, number, keepMs, first, ...ids]);
    const [verdict, pending, added] = reply as ['ok' | 'gap', number, number];
    if (verdict === 'gap') return { verdict, known: pending };
    return verdict === 'ok' ? { verdict, pending, added } : { verdict: 'gone' };
  }

  /**
   * `drawn`: below 2^24, drawn anew for each pull. It goes into the attempts of what is handed out, so that a
   * number that is given once more, by a server that lost its last writes, makes another key.
   */
  async pull(life: string, drawn = 0): Promise<PulledId | NoIdQueue> {
    const keys = ['state', 'pending', 'running', 'tasks'] as const;
    return handed(await this.#run('id-pull', keys, [life, 32 * drawn + 1]));
  }

  async resume(life: string, { number, attempt }: IdKey): Promise<PulledId | NoIdQueue> {
    const keys = ['state', 'running', 'tasks'] as const;
    return handed(await this.#run('id-resume', keys, [life, number, attempt]));
  }

  /** Ends a task: as failed with a `failure`, else as succeeded. Answers whether that counted. */
  async settle(
    life: string,
    { number, attempt }: IdKey,
    failure?: string,
  ): Promise<{ readonly verdict: 'counted' | 'late' } | NoIdQueue> {
    const keys = ['state', 'running', 'tasks', 'known', 'failed'] as const;
    const kind = failure === undefined ? 's' : 'f';
    const args = [life, number, attempt, kind, failure ?? ''];
    const [verdict] = await this.#run('id-settle', keys, args);
    return { verdict: verdict as 'counted' | 'late' | 'gone' };
  }

  /** Counts, and `count` failures from the `first` on; 0 is the latest. */
  async inspect(life: string, first = 0, count = 0): Promise<InspectedIdQueue | NoIdQueue> {
    const keys = ['state', 'pending', 'running', 'failed'] as const;
    const reply = await this.#run('id-inspect', keys, [life, first, count]);
    const [verdict, pending, running, completed, failures, flat] = reply as [
      'ok',
      ...[number, number, number, number],
      string[],
    ];
    if (verdict !== 'ok') return { verdict: 'gone' };
    const failed: KeptIdFailure[] = [];
    for (let i = 0; i < flat.length; i += 4) {
      const [id = '', key = '', message = '', at] = flat.slice(i, i + 4);
      failed.push({ id, key, message, at: Number(at) });
    }
    return { verdict, pending, running, completed, failures, failed };
  }

  async drop(life: string): Promise<{ readonly verdict: 'dropped' | 'gone' }> {
    const { name: _, ...keys } = this.keys;
    const all = Object.keys(keys) as Exclude<keyof IdQueueKeys, 'name'>[];
    const [verdict] = await this.#run('id-drop', all, [life]);
    return { verdict: verdict as 'dropped' | 'gone' };
  }
}

function handed(reply: readonly unknown[]): PulledId | NoIdQueue {
  const verdict = reply[0] as (PulledId | NoIdQueue)['verdict'];
  if (verdict === 'gone') return { verdict };
  if (verdict === 'processing') return { verdict, at: reply[1] as number };
  if (verdict === 'none') return { verdict, at: reply[1] as number };
  const [, number, attempt, id, at] = reply as [string, number, number, string, number];
  return { verdict, number, attempt, id, at };
}
