import type { Failure } from '@piecework/notifier';
import { shownText } from '@piecework/protocol/contract';
import type { Output } from './output.js';

/** Failures of one class whose messages are the same except for numbers, paths, names with dots and quoted words. */
export interface FailureKind {
  readonly name: string;
  /** The message of the first one, its first line. */
  readonly message: string;
  count: number;
  /** The first of their indexes. */
  readonly indexes: number[];
}

/** The number of kinds that are told apart; further failures are counted by class: name of the error, or exit code. */
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
    const [message = ''] = error.message.trim().split(/[\r\n]/, 1);
    const likeness = `${error.name}: ${shapeOf(message)}`;
    const known = kinds.has(likeness) || kinds.size < MOST_KINDS;
    const what = classOf(error.name, message);
    const key = known ? likeness : `${error.name}: ${what}`;
    const shown = known ? message : what;
    const kind = kinds.get(key) ?? { name: error.name, message: shown, count: 0, indexes: [] };
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

/** How a program ended, or no more than that there were others of this name. */
function classOf(name: string, message: string): string {
  const others = 'with other messages';
  return name === 'ExitError' ? `${message.split(': ', 1)[0]}, ${others}` : others;
}

/** The part that messages about different items have in common. */
function shapeOf(message: string): string {
  const words = message
    .replace(/(["'`])(?=\S).*?\1/g, '…')
    // Paths, names of files and hosts, addresses.
    .replace(/[^\s:]*(?:[/\\@]|\w\.\w)[^\s:]*/g, '…');
  // `cat: words: No such file`: the item is between the program and the reason.
  const [exit, program, ...rest] = /^(exit code \d+|ended by \w+): (.*)$/.test(words)
    ? words.split(': ')
    : [];
  const parts = rest.length > 1 ? [exit, program, '…', rest.at(-1)] : [words];
  return parts.join(': ').replace(/(?<!^exit code )\d+/g, '0');
}

/** `20 × exit code 127: nosuchprog: not found (index 0, 1, 2, …)`, no longer than `columns`. */
export function kindLine({ name, message, count, indexes }: FailureKind, columns: number): string {
  const what = shownText(
    name === 'ExitError'
      ? message.replace(/\/bin\/sh: (line )?\d+: /, '')
      : // The message of the first stands for all: leave out the item that it names.
        `${name}: ${message.replace(/^attempt \d+ of sub-request \d+ of \S+: /, '')}`,
  );
  const more = count > indexes.length ? ', …' : '';
  const begin = `  ${count.toLocaleString('en-US')} × `;
  const end = ` (index ${indexes.join(', ')}${more})`;
  const room = Math.max(20, columns - 1 - begin.length - end.length);
  return `${begin}${what.length > room ? `${what.slice(0, room - 1)}…` : what}${end}`;
}
