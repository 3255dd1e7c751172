import { MAX_PAYLOAD_BYTES } from '@piecework/protocol';
import type { Handler, HandlerContext } from '@piecework/worker';
import { ExecProgram, ExitError, programEnvironment, programError } from './exec-program.js';

/**
 * `--exec`: a program of its own for each sub-request. The payload is on standard input, a text as
 * it is and anything else as JSON; standard output without its last line end is the result, read as
 * JSON with `--exec-output json`. Any exit code but 0 fails the sub-request.
 */
export function execEach(command: string, output: 'text' | 'json'): Handler<unknown> {
  return async (payload, context) => {
    const { signal } = context;
    const program = await ExecProgram.start(command, environment(context), signal);
    const stop = () => program.stop();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      program.stdin.end(typeof payload === 'string' ? payload : JSON.stringify(payload));
      const [text, how] = await Promise.all([readAll(program), program.ended]);
      if (how !== '') throw new ExitError(how, program.stderr);
      return output === 'json' ? parse(text) : text.replace(/\r?\n$/, '');
    } finally {
      signal.removeEventListener('abort', stop);
    }
  };
}

function environment({ requestId, index, attempt }: HandlerContext): NodeJS.ProcessEnv {
  return {
    ...programEnvironment(),
    PIECEWORK_REQUEST_ID: requestId,
    PIECEWORK_INDEX: String(index),
    PIECEWORK_ATTEMPT: String(attempt),
  };
}

/** All of standard output. A pipe that is cut off in the end has given all that it will. */
async function readAll(program: ExecProgram): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  await new Promise<void>((resolve, reject) => {
    program.stdout.on('data', (part: Buffer) => {
      parts.push(part);
      bytes += part.length;
      if (bytes <= MAX_PAYLOAD_BYTES) return;
      program.stop();
      program.stdout.destroy();
      const most = `more than ${MAX_PAYLOAD_BYTES} bytes`;
      reject(programError(`the program wrote ${most} to standard output`));
    });
    program.stdout.once('close', resolve);
  });
  return Buffer.concat(parts).toString('utf8');
}

function parse(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw programError('the program wrote something to standard output that is not JSON');
  }
}
