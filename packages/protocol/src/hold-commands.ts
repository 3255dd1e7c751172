import type { Connection } from './connection.js';
import { requestKeys } from './keys.js';
import type { Complete, Gone, RequestOutcome } from './request-commands.js';
import { runScript } from './run-script.js';

/** What holds a request back for a time. Hash slot of `{<id>}`. */
export class HoldCommands {
  readonly #connection: Connection;
  readonly #request: string;

  constructor(connection: Connection, id: string) {
    this.#connection = connection;
    this.#request = requestKeys(id).request;
  }

  /** Holds the request back for `holdMs`; answers until when it is held, in server time. */
  async hold(
    generation: number,
    holdMs: number,
  ): Promise<{ verdict: 'held'; until: number } | Complete | Gone> {
    const { client } = this.#connection;
    const reply = await runScript(client, 'hold', [this.#request], [generation, holdMs]);
    if (reply[0] === 'held') return { verdict: 'held', until: Number(reply[1]) };
    if (reply[0] === 'gone') return { verdict: 'gone' };
    return { verdict: 'complete', outcome: reply[1] as RequestOutcome };
  }
}
