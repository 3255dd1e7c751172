import { type Command, Redis } from 'ioredis';

/** The looks at the agenda come when they like; nobody waits for their reply. */
const isTick = ({ args }: Command) => Number(args[1]) > 100 && /:pushed$/.test(String(args[6]));

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
    if (!/^eval(sha)?$/.test(command.name) || isTick(command)) return reply;
    this.#calls += 1;
    if (this.#calls !== this.#losing) return reply;
    const lost = () => {
      throw new Error('Connection is closed.');
    };
    return reply.then(lost, lost);
  }
}
