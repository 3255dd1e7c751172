import { JsonText } from '@piecework/protocol/contract';
import type { Input } from '../input/input.js';
import { lossOf } from '../json/loss.js';
import { say } from '../terminal/print.js';

/** How many items are checked: an input is the same throughout, and each check takes time. */
const CHECKED = 10;

/** Says once that handlers get an item of the input otherwise than the input has it. */
export class LossWarning {
  readonly #items: Input;
  #left = CHECKED;

  constructor(items: Input) {
    this.#items = items;
  }

  check(item: unknown): void {
    if (this.#left === 0 || !(item instanceof JsonText)) return;
    this.#left -= 1;
    const loss = lossOf(item);
    if (loss === undefined) return;
    this.#left = 0;
    say(`${this.#items.where}: a handler gets ${loss}; a program (--exec) gets the text as it is`);
  }
}
