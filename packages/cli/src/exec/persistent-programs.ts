import { type JsonText, jsonText } from '@piecework/protocol/contract';
import type { Handler, HandlerContext } from '@piecework/worker';
import pTimeout from 'p-timeout';
import split2 from 'split2';
import { membersOf, objectLine } from '../json/json-parts.js';
import { LiveStderr, type StderrPrefix } from './live-stderr.js';
import { ExecProgram, ExitError, programEnvironment } from './program.js';
import { programError } from './program-error.js';

/**
 * `--exec … --persistent`: programs that keep running, one for each slot that is in use. For each sub-request a program
 * reads one line from standard input,
 *
 *     {"requestId":"…","index":0,"attempt":1,"payload":…}
 *
 * and writes one line to standard output: `{"value":…}` or `{"error":"…"}` or `{"error":{"name":"…","message":"…"}}`,
 * which may contain the `index` that it answers. It gets the next line only after that. A program that writes anything
 * else is ended: from then on its answers could be taken for those of other sub-requests. When a program ends, the
 * sub-request that it had fails; the next sub-request starts a new program.
 */

/** The longest line for a result: twice the size of the result, to leave room for the JSON around it. */
const LINE_PER_RESULT = 2;
/** How long programs may take to end by themselves after their standard input was closed, in ms. */
const END_MS = 5_000;

interface Waiting {
  readonly resolve: (line: string) => void;
  readonly reject: (error: Error) => void;
}

/** The sub-request that a program works on, or had last. */
interface WorksOn {
  context: HandlerContext;
}

/** The program ended with exit code 0 before it answered. */
class EndedFirst extends ExitError {}

class Persistent {
  readonly program: ExecProgram;
  /** Whether it can take a sub-request. */
  usable = true;
  /** Whether it has answered one. */
  used = false;
  readonly #worksOn: WorksOn;
  #waiting: Waiting | undefined;

  constructor(program: ExecProgram, worksOn: WorksOn, maxResultBytes: number) {
    const maxLength = LINE_PER_RESULT * maxResultBytes;
    this.program = program;
    this.#worksOn = worksOn;
    const lines = program.stdout.pipe(split2({ maxLength }));
    lines.on('data', (line: string) => this.#said(line));
    const long = `the program wrote a line of more than ${maxLength} bytes: raise --max-result-bytes`;
    lines.on('error', () => this.#fail(programError(long)));
    void program.ended.then((how) => {
      const { stderr } = program;
      if (how === '') this.#fail(new EndedFirst('the program ended before it answered', stderr));
      else this.#fail(new ExitError(how, stderr));
    });
  }

  async ask(line: string, context: HandlerContext): Promise<string> {
    this.#worksOn.context = context;
    const answer = new Promise<string>((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
    await Promise.race([this.program.write(`${line}\n`), answer]);
    return answer;
  }

  #said(line: string): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.used = true;
    if (waiting) waiting.resolve(line);
    // An answer without a question.
    else this.close();
  }

  #fail(error: Error): void {
    this.close();
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }

  close(): void {
    this.usable = false;
    void this.program.close();
  }
}

export class PersistentPrograms {
  readonly #command: string;
  readonly #all = new Set<Persistent>();
  readonly #idle: Persistent[] = [];

  readonly #maxResultBytes: number;
  readonly #prefix: StderrPrefix | undefined;

  /** @param prefix begins each line of standard error; undefined: standard error is not shown */
  constructor(command: string, maxResultBytes: number, prefix?: StderrPrefix) {
    this.#command = command;
    this.#maxResultBytes = maxResultBytes;
    this.#prefix = prefix;
  }

  readonly handler: Handler<JsonText> = async (payload, context) => {
    for (;;) {
      const one = this.#takeIdle() ?? (await this.#start(context));
      const { used } = one;
      try {
        return await this.#work(one, payload, context);
      } catch (error) {
        // A used program that ended with exit code 0 did not begin this sub-request: start another.
        if (!(used && error instanceof EndedFirst)) throw error;
      }
    }
  };

  async #work(one: Persistent, payload: JsonText, context: HandlerContext): Promise<unknown> {
    const close = () => one.close();
    context.signal.addEventListener('abort', close, { once: true });
    if (context.signal.aborted) close();
    try {
      const line = await one.ask(lineFor(payload, context), context);
      const answer = parse(line, context.index);
      if (answer) return unwrap(answer);
      one.close();
      const what = 'neither {"value":…} nor {"error":…}, or of another index';
      throw programError(`the program wrote a line that is ${what}`);
    } finally {
      context.signal.removeEventListener('abort', close);
      if (one.usable) this.#idle.push(one);
    }
  }

  #takeIdle(): Persistent | undefined {
    for (;;) {
      const idle = this.#idle.pop();
      if (idle === undefined || idle.usable) return idle;
    }
  }

  async #start(context: HandlerContext): Promise<Persistent> {
    const prefix = this.#prefix;
    const worksOn: WorksOn = { context };
    const live = prefix && new LiveStderr(() => prefix(worksOn.context));
    const { signal } = context;
    const program = await ExecProgram.start(this.#command, programEnvironment(), signal, live);
    const one = new Persistent(program, worksOn, this.#maxResultBytes);
    this.#all.add(one);
    void one.program.ended.then(() => this.#all.delete(one));
    return one;
  }

  /** Closes the programs' standard input, and ends those that have not ended five seconds later. */
  async close(): Promise<void> {
    const all = [...this.#all];
    const ended = Promise.all(all.map(({ program }) => program.ended));
    for (const { program } of all) program.stdin.end();
    await pTimeout(ended, { milliseconds: END_MS, message: false });
    for (const one of all) one.close();
    await ended;
  }
}

/** `value` is kept as the program wrote it. */
type Answer = { readonly value: JsonText } | { readonly error: unknown };

function lineFor(payload: JsonText, { requestId, index, attempt }: HandlerContext): string {
  return objectLine({ requestId, index, attempt, payload });
}

/** The answer in a line; undefined when it is not an answer, or one to another sub-request. */
function parse(line: string, index: number): Answer | undefined {
  let json: JsonText;
  try {
    json = jsonText(line);
  } catch {
    return undefined;
  }
  if (!/^\s*\{/.test(line)) return undefined;
  const answer = membersOf(json);
  const [about, value, error] = ['index', 'value', 'error'].map((name) => answer.get(name));
  if (about && about.value !== index) return undefined;
  if (error) return { error: error.value };
  return value && { value };
}

/** The value of an answer. @throws the error of an answer */
function unwrap(answer: Answer): unknown {
  if (!('error' in answer)) return answer.value;
  const { error } = answer;
  if (typeof error !== 'object' || error === null) throw programError(String(error));
  const { name = 'Error', message = '' } = error as { name?: unknown; message?: unknown };
  throw programError(String(message), String(name));
}
