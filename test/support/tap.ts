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
 * that dies there leaves behind. Also between the scripts of a pipeline, of which Redis may have got
 * the first ones only; not in any other pipeline.
 */
export class TappedRedis extends Redis {
  readonly #check: (sending: Sending) => Promise<void>;

  constructor(url: string, check: (sending: Sending) => Promise<void>) {
    super(url, { lazyConnect: true, protocol: 2 });
    this.#check = check;
  }

  override pipeline(...[commands]: Parameters<Redis['pipeline']>): ReturnType<Redis['pipeline']> {
    const all = commands as unknown[][];
    if (!all?.every(([verb]) => verb === 'evalsha')) return super.pipeline(commands);
    const exec = async () => {
      const answers: [Error | null, unknown][] = [];
      for (const [, ...args] of all) {
        const call = this.evalsha(...(args as Parameters<Redis['evalsha']>));
        answers.push(
          await call.then(
            (reply) => [null, reply],
            (error: Error) => [error, undefined],
          ),
        );
      }
      return answers;
    };
    return { exec } as unknown as ReturnType<Redis['pipeline']>;
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
