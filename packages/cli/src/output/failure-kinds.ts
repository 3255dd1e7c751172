import { type Failure, type FailureKind, FailureKinds } from '@piecework/notifier';
import { shownText } from '@piecework/protocol/contract';
import { objectLine } from '../json/json-parts.js';
import type { Output } from './output.js';

/** Counts failures by kind, the most frequent first, and writes each to `output` if there is one. */
export async function failureKinds(
  failures: AsyncIterable<Failure>,
  output?: Output,
): Promise<FailureKind[]> {
  const kinds = new FailureKinds();
  for await (const failure of failures) {
    if (output) await output.line(failureLine(failure));
    kinds.note(failure.index, failure.error);
  }
  return kinds.sorted;
}

/** As `failures ID --json --payload` prints it, without the cursor. */
export function failureLine({ index, attempts, crashes, error, payload }: Failure): string {
  const shown = payload === undefined ? null : payload;
  return objectLine({ index, attempts, crashes, error, payload: shown });
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
