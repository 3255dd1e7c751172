import { MAX_PAYLOAD_BYTES } from '@piecework/protocol';
import type { Handler, HandlerContext } from '@piecework/worker';
import split2 from 'split2';
import { ExecProgram, ExitError } from './exec-program.js';

/**
 * `--exec … --persistent`: programs that live on, one for each slot that is in use. For each
 * sub-request a program reads one line from standard input,
 *
 *     {"requestId":"…","index":0,"attempt":1,"payload":…}
 *
 * and writes one line to standard output: `{"value":…}` or `{"error":"…"}` or
 * `{"error":{"name":"…","message":"…"}}`. It gets the next line only after that. A program that ends
 * fails the sub-request that it had; the next one starts a new program. At the end of the worker
 * its standard input is closed.
 */

/** A result may have half of that; the rest is for what stands around it. */
const MAX_LINE_BYTES = 2 * MAX_PAYLOAD_BYTES;

interface Waiting {
  readonly resolve: (line: string) => void;
  readonly reject: (error: Error) => void;
}

class Persistent {
  readonly program: ExecProgram;
  /** Whether it can take a sub-request. */
  usable = true;
  #waiting: Waiting | undefined;

  constructor(command: string) {
    this.program = new ExecProgram(command, process.env);
    const lines = this.program.stdout.pipe(split2({ maxLength: MAX_LINE_BYTES }));
    lines.on('data', (line: string) => this.#said(line));
    lines.on('error', (error: Error) => this.#fail(error));
    void this.program.ended.then((how) => {
      const unasked = how === '' ? 'the program ended before it answered' : how;
      this.#fail(new ExitError(unasked, this.program.stderr));
    });
  }

  async ask(line: string): Promise<string> {
    const answer = new Promise<string>((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
    await Promise.race([this.program.write(`${line}\n`), answer]);
    return answer;
  }

  /** It answered, or will never answer, what it was asked: the next may come, or none. */
  #said(line: string): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) waiting.resolve(line);
    // Nobody asked: from now on lines could not be told apart.
    else this.stop();
  }

  #fail(error: Error): void {
    this.stop();
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }

  stop(): void {
    this.usable = false;
    this.program.stop();
  }
}

export class PersistentPrograms {
  readonly #command: string;
  readonly #all = new Set<Persistent>();
  readonly #idle: Persistent[] = [];

  constructor(command: string) {
    this.#command = command;
  }

  readonly handler: Handler<unknown> = async (payload, context) => {
    const one = this.#take();
    const stop = () => one.stop();
    context.signal.addEventListener('abort', stop, { once: true });
    if (context.signal.aborted) stop();
    try {
      return read(await one.ask(lineFor(payload, context)));
    } finally {
      context.signal.removeEventListener('abort', stop);
      if (one.usable) this.#idle.push(one);
    }
  };

  #take(): Persistent {
    for (;;) {
      const idle = this.#idle.pop();
      if (idle?.usable) return idle;
      if (idle === undefined) break;
    }
    const one = new Persistent(this.#command);
    this.#all.add(one);
    void one.program.ended.then(() => this.#all.delete(one));
    return one;
  }

  /** Closes the programs' standard input and waits for their end, five seconds and no longer. */
  async close(): Promise<void> {
    const late = setTimeout(() => {
      for (const one of this.#all) one.stop();
    }, 5_000);
    for (const { program } of this.#all) program.stdin.end();
    await Promise.all([...this.#all].map(({ program }) => program.ended));
    clearTimeout(late);
  }
}

function lineFor(payload: unknown, { requestId, index, attempt }: HandlerContext): string {
  return JSON.stringify({ requestId, index, attempt, payload });
}

/** The result in an answer. @throws whatever error it says, or that it is none */
function read(line: string): unknown {
  const answer = parse(line);
  if (typeof answer !== 'object' || answer === null || !('error' in answer || 'value' in answer)) {
    throw new Error('the program wrote a line that is neither {"value":…} nor {"error":…}');
  }
  if (!('error' in answer)) return (answer as { value: unknown }).value;
  const { error } = answer as { error: unknown };
  if (typeof error !== 'object' || error === null) throw named('Error', String(error));
  const { name = 'Error', message = '' } = error as { name?: unknown; message?: unknown };
  throw named(String(name), String(message));
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function named(name: string, message: string): Error {
  const error = new Error(message);
  error.name = name;
  // The stack of this file tells nobody anything.
  error.stack = `${name}: ${message}`;
  return error;
}
