import { Redis } from 'ioredis';
import { buildScripts } from '../../scripts/lua-source.mjs';

/** A script that is about to be sent. */
export interface Sending {
  readonly script: string;
  /** Without the keys. */
  readonly args: readonly string[];
}

const names = new Map(
  Object.entries(buildScripts()).flatMap(([name, { sha, lua }]) => [
    [sha, name],
    [lua, name],
  ]),
);

/**
 * A client that stops before each script that it sends on its own (not in a pipeline) until `look`
 * is done: what is in Redis then is what a process that dies there leaves behind.
 */
export class TappedRedis extends Redis {
  readonly #look: (sending: Sending) => Promise<void>;

  constructor(url: string, look: (sending: Sending) => Promise<void>) {
    super(url, { lazyConnect: true, protocol: 2 });
    this.#look = look;
  }

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    const [text, count, ...rest] = command.args.map(String);
    const script = /^eval/.test(command.name) ? names.get(String(text)) : undefined;
    if (script === undefined || stream !== undefined) return super.sendCommand(command, stream);
    void this.#look({ script, args: rest.slice(Number(count)) }).then(
      () => {
        // Whoever sent it holds the promise, and hears of an error there.
        void super.sendCommand(command, stream);
      },
      (error: Error) => command.reject(error),
    );
    return command.promise;
  }
}
