import { isUtf8 } from 'node:buffer';
import type { Handler, HandlerContext } from '@piecework/worker';
import { type Binary, binaryOf } from './binary.js';
import type { ExecCommand } from './exec-command.js';
import { ExecProgram, ExitError, programEnvironment, programError } from './exec-program.js';
import type { LiveStderr } from './live-stderr.js';

/** What becomes of standard output. */
export type ExecOutput = 'text' | 'json' | 'none';

interface OutputTerms {
  readonly as: ExecOutput;
  readonly maxBytes: number;
  /** Told of each program that wrote what is discarded. */
  readonly discarded: () => Promise<void>;
}

/**
 * `--exec`: a program of its own for each sub-request. The payload is on standard input, a text or bytes as
 * they are and anything else as JSON, or it is an argument, where the command has `{}`; standard output
 * without its last line end is the result, read as JSON with `--exec-output json`. What is not UTF-8 stays
 * as it is. With `--exec-output none` it is read and discarded, however long it is. Any exit code but 0 fails the sub-request.
 */
export function execEach(
  command: ExecCommand,
  output: OutputTerms,
  live: (context: HandlerContext) => LiveStderr | undefined,
): Handler<unknown> {
  return async (payload, context) => {
    const { signal } = context;
    const { command: line, env, stdin } = command.invocation(payload, context.index);
    const environment = { ...environmentOf(context), ...env };
    const program = await ExecProgram.start(line, environment, signal, live(context));
    const stop = () => program.stop();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      program.stdin.end(stdin);
      const { as, maxBytes, discarded } = output;
      const reading = as === 'none' ? readNothing(program) : readAll(program, maxBytes);
      const [read, how] = await Promise.all([reading, program.ended]);
      if (how !== '') throw new ExitError(how, program.stderr);
      if (read === 'nothing') return undefined;
      if (read === 'something') return await discarded();
      return as === 'json' ? parse(read.toString()) : textOf(read);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  };
}

function environmentOf({ requestId, index, attempt }: HandlerContext): NodeJS.ProcessEnv {
  return {
    ...programEnvironment(),
    PIECEWORK_REQUEST_ID: requestId,
    PIECEWORK_INDEX: String(index),
    PIECEWORK_ATTEMPT: String(attempt),
  };
}

/** All of standard output. A pipe that is cut off in the end has given all that it will. */
async function readAll(program: ExecProgram, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  await new Promise<void>((resolve, reject) => {
    program.stdout.on('data', (part: Buffer) => {
      parts.push(part);
      bytes += part.length;
      if (bytes <= maxBytes) return;
      program.stop();
      program.stdout.destroy();
      reject(programError(`more than ${maxBytes} bytes of output: raise --max-result-bytes`));
    });
    program.stdout.once('close', resolve);
  });
  return Buffer.concat(parts);
}

/** Reads it all the same: a program that cannot write would wait, or fail. */
async function readNothing(program: ExecProgram): Promise<'nothing' | 'something'> {
  let some = false;
  await new Promise<void>((resolve) => {
    program.stdout.on('data', () => {
      some = true;
    });
    program.stdout.once('close', resolve);
  });
  return some ? 'something' : 'nothing';
}

function textOf(bytes: Buffer): string | Binary {
  return isUtf8(bytes) ? bytes.toString().replace(/\r?\n$/, '') : binaryOf(bytes);
}

function parse(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw programError('the program wrote something to standard output that is not JSON');
  }
}
