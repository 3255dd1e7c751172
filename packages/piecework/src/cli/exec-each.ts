import { MAX_PAYLOAD_BYTES } from '@piecework/protocol';
import type { Handler, HandlerContext } from '@piecework/worker';
import { ExecProgram, ExitError } from './exec-program.js';

/**
 * `--exec`: a program of its own for each sub-request. The payload is on standard input, a text as
 * it is and anything else as JSON; standard output without its last line end is the result, read as
 * JSON with `--exec-output json`. Any exit code but 0 fails the sub-request.
 */
export function execEach(command: string, output: 'text' | 'json'): Handler<unknown> {
  return async (payload, context) => {
    const program = new ExecProgram(command, environment(context));
    const stop = () => program.stop();
    context.signal.addEventListener('abort', stop, { once: true });
    if (context.signal.aborted) stop();
    try {
      program.stdin.end(typeof payload === 'string' ? payload : JSON.stringify(payload));
      const [text, how] = await Promise.all([readAll(program), program.ended]);
      if (how !== '') throw new ExitError(how, program.stderr);
      return output === 'json' ? parse(text) : text.replace(/\r?\n$/, '');
    } finally {
      context.signal.removeEventListener('abort', stop);
    }
  };
}

function environment({ requestId, index, attempt }: HandlerContext): NodeJS.ProcessEnv {
  return {
    ...process.env,
    PIECEWORK_REQUEST_ID: requestId,
    PIECEWORK_INDEX: String(index),
    PIECEWORK_ATTEMPT: String(attempt),
  };
}

async function readAll(program: ExecProgram): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of program.stdout as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MAX_PAYLOAD_BYTES) {
      program.stop();
      throw new Error(`the program wrote more than ${MAX_PAYLOAD_BYTES} bytes to standard output`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function parse(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error('the program wrote something to standard output that is not JSON', { cause });
  }
}
