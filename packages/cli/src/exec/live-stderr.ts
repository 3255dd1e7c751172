import { stripVTControlCharacters } from 'node:util';
import { shownText } from '@piecework/protocol/contract';
import type { HandlerContext } from '@piecework/worker';
import { say } from '../terminal/print.js';

/** Names the sub-request that wrote a line. */
export type StderrPrefix = (context: HandlerContext) => string;

/** Longest piece of a line that is written at once: processes that share a pipe do not split shorter ones. */
const MAX_PIECE = 1_000;

/**
 * Shows what a program writes to standard error, line by line as it comes, each behind `[prefix]`. Of a line that
 * overwrites itself, as a progress bar does, only the last state is shown, without the sequences that move the cursor.
 */
export class LiveStderr {
  #begun = '';
  readonly #prefix: () => string;

  constructor(prefix: () => string) {
    this.#prefix = prefix;
  }

  add(text: string): void {
    const lines = (this.#begun + text).split('\n');
    this.#begun = lines.pop() ?? '';
    for (const line of lines) this.#show(line);
    // A very long line is shown in parts.
    if (this.#begun.length > 16 * MAX_PIECE) this.end();
  }

  end(): void {
    if (this.#begun !== '') this.#show(this.#begun);
    this.#begun = '';
  }

  #show(line: string): void {
    const last = line.replace(/\r+$/, '').split('\r').at(-1) ?? '';
    const plain = shownText(stripVTControlCharacters(last), '\t');
    for (let at = 0; at === 0 || at < plain.length; at += MAX_PIECE)
      say(`[${this.#prefix()}] ${plain.slice(at, at + MAX_PIECE)}`);
  }
}
