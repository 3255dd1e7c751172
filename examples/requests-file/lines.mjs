// The lines of a requests file: `limit:part:part:part…`, `#` starts a comment anywhere in a line.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

const MAX_LIMIT = 1_000_000;
const MAX_PART_BYTES = 1_000_000;

/**
 * One line as `{ limit, parts }`; undefined when there is nothing on it.
 * @throws SyntaxError that says what is wrong
 */
export function parseLine(text) {
  const content = text.replace(/#.*/s, '').trim();
  if (content === '') return undefined;
  const [first, ...parts] = content.split(':').map((piece) => piece.trim());
  const limit = /^\d+$/.test(first) ? Number(first) : 0;
  if (limit < 1 || limit > MAX_LIMIT) {
    const shown = JSON.stringify(first.slice(0, 40));
    throw new SyntaxError(`limit ${shown} is not a whole number from 1 to ${MAX_LIMIT}`);
  }
  if (parts.length === 0) throw new SyntaxError('it has no parts: limit:part:part:…');
  for (const [index, part] of parts.entries()) {
    if (part === '') throw new SyntaxError(`part ${index + 1} of ${parts.length} is empty`);
    if (Buffer.byteLength(JSON.stringify(part)) > MAX_PART_BYTES) {
      throw new SyntaxError(`part ${index + 1} is longer than ${MAX_PART_BYTES} bytes`);
    }
  }
  return { limit, parts };
}

/** Every line that says something, as it is read: `{ line, limit, parts }` or `{ line, error }`. */
export async function* linesOf(file) {
  let line = 0;
  const input = createReadStream(file);
  for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    line += 1;
    try {
      const request = parseLine(text);
      if (request) yield { line, ...request };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      yield { line, error };
    }
  }
}
