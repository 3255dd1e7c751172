import { type Command, Redis } from 'ioredis';
import type { ScriptName } from '../../scripts/lua-source.mjs';
import { scriptOf } from './script-names.js';

/** Scripts of the upkeep: they run by a clock of their own, and for other requests too. */
const upkeep: ReadonlySet<string | undefined> = new Set(['tick', 'tend', 'write-back']);

/**
 * A client that loses the reply of one script call: the server has carried it out, and the caller
 * hears that the connection broke.
 */
export class LossyRedis extends Redis {
  #calls = 0;
  #losing = 0;
  /** How often each script was called in all. */
  readonly #called = new Map<ScriptName, number>();
  #losingNext: ScriptName | undefined;

  /** From here on script calls are counted from 1, and the reply of call `n` gets lost; 0: of none. */
  lose(n: number): void {
    this.#calls = 0;
    this.#losing = n;
  }

  /** The reply of the next call of this script that the server carries out gets lost. */
  loseNext(script: ScriptName): void {
    this.#losingNext = script;
  }

  callsOf(script: ScriptName): number {
    return this.#called.get(script) ?? 0;
  }

  /** Script calls since `lose`. */
  get calls(): number {
    return this.#calls;
  }

  override sendCommand(command: Command, stream?: never): unknown {
    const reply = super.sendCommand(command, stream) as Promise<unknown>;
    if (!/^eval(sha)?$/.test(command.name)) return reply;
    const lost = () => {
      throw new Error('Connection is closed.');
    };
    const name = scriptOf(command.name, command.args);
    if (name) this.#called.set(name, this.callsOf(name) + 1);
    if (name && name === this.#losingNext) {
      return reply.then(() => {
        this.#losingNext = undefined;
        lost();
      });
    }
    if (upkeep.has(name)) return reply;
    this.#calls += 1;
    return this.#calls === this.#losing ? reply.then(lost, lost) : reply;
  }
}
