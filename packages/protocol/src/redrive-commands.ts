import type { Connection } from './connection.js';
import { type RequestKeys, requestKeys } from './keys.js';
import { runBehind } from './run-behind.js';
import { runScript } from './run-script.js';

export type Reopened =
  | {
      readonly verdict: 'opened';
      /** The producer that sealed the first life, or '', and how many items it appended. */
      readonly sealedBy: string;
      readonly sent: number;
    }
  | { readonly verdict: 'exists'; readonly status: string; readonly generation: number }
  /** `above`: the next intent is to give a greater generation. */
  | { readonly verdict: 'void'; readonly above: number }
  | { readonly verdict: 'gone' }
  /** The connection over which the intent was heard is gone. */
  | { readonly verdict: 'broke' };

export type RunAgain =
  | {
      readonly verdict: 'ok';
      /** How many of the indexes were dealt with. */
      readonly done: number;
      /** How many moved in this life so far. */
      readonly moved: number;
      readonly mint: number;
      readonly epoch: number;
      readonly priority: number;
    }
  | { readonly verdict: 'sealed' | 'cancelling' | 'complete' | 'gone' };

/** Payloads that one call moves, in bytes, about. */
const MAX_BYTES = 1_000_000;

/** The scripts of a redrive, for one request. Hash slot of `{<id>}`. */
export class RedriveCommands {
  readonly keys: RequestKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, id: string) {
    this.#connection = connection;
    this.keys = requestKeys(id);
  }

  /**
   * Opens the next life of a complete request. `epoch`: the intent was answered over the connection of this number,
   * see run-behind.ts.
   */
  async open(
    generation: number,
    owner: string,
    leaseMs: number,
    epoch = this.#connection.epoch,
  ): Promise<Reopened> {
    const { request, work, failed, results } = this.keys;
    const keys = [request, work, failed, results];
    let clearing = '0';
    for (;;) {
      const args = [generation, owner, leaseMs, clearing];
      const call = { name: 'redrive', keys, args } as const;
      const reply = await runBehind(this.#connection, epoch, call);
      if (!reply) return { verdict: 'broke' };
      const [verdict, detail, number] = reply as [string, string, number];
      if (verdict === 'clearing') clearing = detail;
      else return reopened(verdict, detail, number);
    }
  }

  /** Moves failed sub-requests into that life; indexes rise, also from call to call. */
  async runAgain(
    generation: number,
    owner: string,
    indexes: readonly number[],
    maxBytes = MAX_BYTES,
  ): Promise<RunAgain> {
    const { request, work, due, failed } = this.keys;
    const keys = [request, work, due, failed];
    const args = [generation, owner, maxBytes, ...indexes];
    const reply = await runScript(this.#connection.client, 'run-again', keys, args);
    const [verdict, done, moved, mint, epoch, priority] = reply as [string, ...number[]];
    if (verdict !== 'ok') return { verdict: verdict as 'sealed' };
    const numbers = [done, moved, mint, epoch, priority].map(Number);
    const [a = 0, b = 0, c = 0, d = 0, e = 0] = numbers;
    return { verdict, done: a, moved: b, mint: c, epoch: d, priority: e };
  }
}

function reopened(verdict: string, detail: string, number: number): Reopened {
  if (verdict === 'opened') return { verdict, sealedBy: detail, sent: number };
  if (verdict === 'exists') return { verdict, status: detail, generation: number };
  if (verdict === 'void') return { verdict, above: Number(detail) };
  return { verdict: 'gone' };
}
