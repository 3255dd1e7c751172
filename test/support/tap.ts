import { Redis } from 'ioredis';
import { buildScripts } from '../../scripts/lua-source.mjs';

/** A command that is about to be sent. */
export interface Sending {
  /** The name of a script, or of a plain command. */
  readonly what: string;
  /** Of a script: without the keys. */
  readonly args: readonly string[];
}

const names = new Map(
  Object.entries(buildScripts()).flatMap(([name, { sha, lua }]) => [
    [sha, name],
    [lua, name],
  ]),
);

/**
 * A client that stops before each command until `check` is done: what is in Redis then is what a process
 * that dies there leaves behind. Not in a pipeline.
 */
export class TappedRedis extends Redis {
  readonly #check: (sending: Sending) => Promise<void>;

  constructor(url: string, check: (sending: Sending) => Promise<void>) {
    super(url, { lazyConnect: true, protocol: 2 });
    this.#check = check;
  }

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    if (stream !== undefined || this.status !== 'ready') return super.sendCommand(command, stream);
    void this.#check(describe(command.name, command.args.map(String))).then(
      () => {
        // Whoever sent it holds the promise, and hears of an error there.
        void super.sendCommand(command, stream);
      },
      (error: Error) => command.reject(error),
    );
    return command.promise;
  }
}

function describe(name: string, args: string[]): Sending {
  const [text, count, ...rest] = args;
  const script = /^eval/.test(name) ? names.get(String(text)) : undefined;
  return script ? { what: script, args: rest.slice(Number(count)) } : { what: name, args };
}
