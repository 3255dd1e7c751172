import { type Command, Redis } from 'ioredis';
import { buildScripts } from '../../scripts/lua-source.mjs';

/** A client that hands out the reply to one script when it is told to, however long that was there. */
export class HeldReplies extends Redis {
  /** By its name and by its text. */
  readonly #script: ReadonlySet<string>;
  held: Promise<unknown> | undefined;
  /** How many replies have come that were held back. */
  came = 0;

  constructor(url: string, script: 'id-pull' | 'timed-take') {
    super(url, { lazyConnect: true, protocol: 2 });
    const clocks = ['server', 'test'] as const;
    const built = clocks.map((clock) => buildScripts({ clock })[script]);
    this.#script = new Set(built.flatMap(({ sha, lua }) => [sha, lua]));
  }

  override sendCommand(command: Command, stream?: never): unknown {
    const reply = super.sendCommand(command, stream) as Promise<unknown>;
    const { held } = this;
    if (!held || !this.#script.has(String(command.args[0]))) return reply;
    return reply.then(async (value) => {
      this.came += 1;
      await held;
      return value;
    });
  }
}
