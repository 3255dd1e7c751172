import { type Command, Redis } from 'ioredis';
import { buildScripts } from '../../scripts/lua-source.mjs';

/** The looks at the agenda, and what they do about other requests, come when they like. */
const looks = new Set(
  (['server', 'test'] as const)
    .map((clock) => buildScripts({ clock }))
    .flatMap((scripts) => [scripts.tick, scripts.tend, scripts['write-back']])
    .flatMap(({ sha, lua }) => [sha, lua]),
);

/**
 * A client that loses the reply of one script call: the server has carried it out, and the caller
 * hears that the connection broke.
 */
export class LossyRedis extends Redis {
  #calls = 0;
  #losing = 0;

  /** From here on script calls are counted from 1, and the reply of call `n` gets lost; 0: of none. */
  lose(n: number): void {
    this.#calls = 0;
    this.#losing = n;
  }

  /** Script calls since `lose`. */
  get calls(): number {
    return this.#calls;
  }

  override sendCommand(command: Command, stream?: never): unknown {
    const reply = super.sendCommand(command, stream) as Promise<unknown>;
    if (!/^eval(sha)?$/.test(command.name) || looks.has(String(command.args[0]))) return reply;
    this.#calls += 1;
    if (this.#calls !== this.#losing) return reply;
    const lost = () => {
      throw new Error('Connection is closed.');
    };
    return reply.then(lost, lost);
  }
}
