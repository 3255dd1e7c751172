import type { split } from '@piecework/producer/items';
import { say } from '../terminal/print.js';

/** Why a path of a pattern or a folder is no item. */
export type SkipReason = split.SkippedFile | 'folder' | 'named twice';

/** Words for what is skipped: one, and several. */
const WORDS: Readonly<Record<SkipReason, readonly [string, string]>> = {
  hidden: ['hidden file or folder', 'hidden files and folders'],
  folder: ['folder', 'folders'],
  'link to a folder': ['link to a folder', 'links to folders'],
  'broken link': ['broken link', 'broken links'],
  'no file': ['pipe, socket or device', 'pipes, sockets and devices'],
  'named twice': ['file that another --input names', 'files that another --input names'],
};

/** Counts what is skipped in a folder, or of what a pattern matches. */
export class Skipped {
  readonly #counts = new Map<SkipReason, number>();

  add(why: SkipReason): void {
    this.#counts.set(why, (this.#counts.get(why) ?? 0) + 1);
  }

  /** Says how much was skipped, if anything was. */
  say(where: string): void {
    const counts = Object.entries(WORDS).flatMap(([why, [one, many]]) => {
      const count = this.#counts.get(why as SkipReason);
      return count === undefined ? [] : [count === 1 ? `1 ${one}` : `${count} ${many}`];
    });
    if (counts.length > 0) say(`skipped in ${where}: ${counts.join(', ')}`);
  }
}
