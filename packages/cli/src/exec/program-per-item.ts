import { isUtf8 } from 'node:buffer';
import { type JsonText, jsonText } from '@piecework/protocol/contract';
import type { Handler, HandlerContext } from '@piecework/worker';
import { type Binary, binaryOf } from '../input/binary.js';
import type { ExecCommand } from './command.js';
import type { LiveStderr } from './live-stderr.js';
import { ExecProgram, ExitError, programEnvironment } from './program.js';
import { programError } from './program-error.js';

/** How standard output is read. */
export type ExecOutput = 'text' | 'json' | 'none';

interface OutputTerms {
  readonly as: ExecOutput;
  readonly maxBytes: number;
  /** Called for each program whose output was discarded. */
  readonly discarded: () => Promise<void>;
}

/**
 * `--exec`: one program for each sub-request. The payload is on standard input (a string or bytes unchanged, anything
 * else as JSON), or an argument where the command contains `{}`. Standard output without its last line end is the
 * result; with `--exec-output json` it is JSON, kept as it is; bytes that are not UTF-8 stay bytes. With
 * `--exec-output none` it is read and discarded, whatever its size. Any exit code but 0 fails the sub-request.
 */
export function execEach(
  command: ExecCommand,
  output: OutputTerms,
  live: (context: HandlerContext) => LiveStderr | undefined,
): Handler<JsonText> {
  return async (payload, context) => {
    const { signal } = context;
    const { command: line, env, stdin } = command.invocation(payload, context.index);
    const environment = { ...environmentOf(context), ...env };
    const program = await ExecProgram.start(line, environment, signal, live(context));
    const close = () => void program.close();
    signal.addEventListener('abort', close, { once: true });
    if (signal.aborted) close();
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
      signal.removeEventListener('abort', close);
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

/** Reads all of standard output. `ExecProgram` closes a pipe that others keep open, which ends it as well. */
async function readAll(program: ExecProgram, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  await new Promise<void>((resolve, reject) => {
    program.stdout.on('data', (part: Buffer) => {
      parts.push(part);
      bytes += part.length;
      if (bytes <= maxBytes) return;
      void program.close();
      program.stdout.destroy();
      reject(programError(`more than ${maxBytes} bytes of output: raise --max-result-bytes`));
    });
    program.stdout.once('close', resolve);
  });
  return Buffer.concat(parts);
}

/** Reads and discards standard output: a program that cannot write would wait, or fail. */
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

function parse(text: string): JsonText | undefined {
  if (text.trim() === '') return undefined;
  try {
    return jsonText(text.trim());
  } catch {
    throw programError('the program wrote something to standard output that is not JSON');
  }
}
