import type { KeptError } from '@piecework/protocol';

/**
 * Failures that a person would call the same: of one error name, and their messages are the same except for numbers,
 * paths, names with dots and quoted words.
 */
export interface FailureKind {
  readonly name: string;
  /** First line of the message of the one with the lowest index. Of all kinds behind the first hundred: no message. */
  readonly message: string;
  readonly count: number;
  /** The lowest of their indexes, at most three. */
  readonly indexes: readonly number[];
}

interface Counted extends FailureKind {
  message: string;
  count: number;
  readonly indexes: number[];
}

/** The number of kinds that are told apart; further failures are counted by class: name of the error, or exit code. */
const MOST_KINDS = 100;
const FIRST_INDEXES = 3;

/** Counts failures by kind. */
export class FailureKinds {
  readonly #kinds = new Map<string, Counted>();

  note(index: number, error: KeptError): void {
    const { name } = error;
    const [message = ''] = error.message.trim().split(/[\r\n]/, 1);
    const likeness = `${name}: ${shapeOf(message)}`;
    const known = this.#kinds.has(likeness) || this.#kinds.size < MOST_KINDS;
    const what = known ? message : classOf(name, message);
    const key = known ? likeness : `${name}: ${what}`;
    const kind = this.#kinds.get(key) ?? { name, message: what, count: 0, indexes: [] };
    this.#kinds.set(key, kind);
    kind.count += 1;
    kind.indexes.push(index);
    kind.indexes.sort((a, b) => a - b).splice(FIRST_INDEXES);
    if (kind.indexes[0] === index) kind.message = what;
  }

  /** The most frequent first. */
  get sorted(): FailureKind[] {
    const first = ({ indexes }: FailureKind) => indexes[0] as number;
    return [...this.#kinds.values()].sort((a, b) => b.count - a.count || first(a) - first(b));
  }
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
    // Paths, names of files and hosts, addresses; but not the place in a payload that a PayloadError names.
    .replace(/(?<![^\s:])(?!payload\.)[^\s:]*(?:[/\\@]|\w\.\w)[^\s:]*/g, '…');
  // `cat: words: No such file`: the item is between the program and the reason.
  const [exit, program, ...rest] = /^(exit code \d+|ended by \w+): (.*)$/.test(words)
    ? words.split(': ')
    : [];
  const parts = rest.length > 1 ? [exit, program, '…', rest.at(-1)] : [words];
  return parts.join(': ').replace(/(?<!^exit code )\d+/g, '0');
}
