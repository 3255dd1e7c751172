import type { Failure } from '@piecework/notifier';
import type { Output } from './output.js';
import { firstLine } from './plain-text.js';

/** Failures that are alike: of one exit code, or with one error but for numbers and quoted words. */
export interface FailureKind {
  readonly name: string;
  /** The message of the first one, its first line. */
  readonly message: string;
  count: number;
  /** The first of their indexes. */
  readonly indexes: number[];
}

/** So many kinds are told apart; of further ones, only names of errors are. */
const MOST_KINDS = 100;
const FIRST_INDEXES = 3;

/** Counts failures by kind, the most frequent first, and writes each to `output` if there is one. */
export async function failureKinds(
  failures: AsyncIterable<Failure>,
  output?: Output,
): Promise<FailureKind[]> {
  const kinds = new Map<string, FailureKind>();
  for await (const failure of failures) {
    if (output) await output.line(failureLine(failure));
    const { index, error } = failure;
    const message = firstLine(error.message);
    const likeness = kindOf(error.name, message);
    const key = kinds.has(likeness) || kinds.size < MOST_KINDS ? likeness : error.name;
    const kind = kinds.get(key) ?? { name: error.name, message, count: 0, indexes: [] };
    kinds.set(key, kind);
    kind.count += 1;
    if (kind.indexes.length < FIRST_INDEXES) kind.indexes.push(index);
  }
  return [...kinds.values()].sort((a, b) => b.count - a.count);
}

/** As `failures ID --json --payload` prints it, without the cursor. */
function failureLine({ index, attempts, crashes, error, payload }: Failure): string {
  const shown = payload === undefined ? null : payload;
  return JSON.stringify({ index, attempts, crashes, error, payload: shown });
}

function kindOf(name: string, message: string): string {
  // How a program ended is what it has in common with others; what it said last need not be.
  if (name === 'ExitError') return `${name}: ${message.split(': ', 1)[0]}`;
  return `${name}: ${message.replace(/(["'`]).*?\1/g, '…').replace(/\d+/g, '0')}`;
}

/** `20 × exit code 127: nosuchprog: not found (index 0, 1, 2, …)`, no longer than `columns`. */
export function kindLine({ name, message, count, indexes }: FailureKind, columns: number): string {
  const what =
    name === 'ExitError' ? message.replace(/\/bin\/sh: (line )?\d+: /, '') : `${name}: ${message}`;
  const more = count > indexes.length ? ', …' : '';
  const begin = `  ${count.toLocaleString('en-US')} × `;
  const end = ` (index ${indexes.join(', ')}${more})`;
  const room = Math.max(20, columns - 1 - begin.length - end.length);
  return `${begin}${what.length > room ? `${what.slice(0, room - 1)}…` : what}${end}`;
}
