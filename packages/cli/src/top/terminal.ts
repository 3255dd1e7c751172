import { emitKeypressEvents } from 'node:readline';
import type { ReadStream, WriteStream } from 'node:tty';
import escapes from 'ansi-escapes';
import { shownPainted } from '../terminal/print.js';
import type { Key } from './keys.js';

/** Lines that are too long in spite of all are cut by the terminal, and do not move those below. */
const NO_WRAP = '\u001b[?7l';
const WRAP = '\u001b[?7h';

/**
 * The terminal while a view has it: another screen, no cursor, each key at once. `leave` gives it back as it was, and may
 * be called at any time. It is also called when the process ends, however that happens, but not by SIGKILL.
 */
export class Terminal {
  readonly #input: ReadStream;
  readonly #output: WriteStream;
  #isOurs = false;
  #shown: readonly string[] = [];
  readonly #leave = () => this.leave();

  constructor(input: ReadStream, output: WriteStream) {
    this.#input = input;
    this.#output = output;
    emitKeypressEvents(input);
    process.on('exit', this.#leave);
  }

  get size(): { readonly columns: number; readonly rows: number } {
    return { columns: this.#output.columns || 80, rows: this.#output.rows || 24 };
  }

  onKey(listener: (key: Key) => void): void {
    this.#input.on('keypress', (_: string | undefined, key: Key) => listener(key));
  }

  onResize(listener: () => void): void {
    this.#output.on('resize', listener);
  }

  /** The terminal was closed. */
  onEnd(listener: () => void): void {
    this.#input.on('end', listener);
    this.#input.on('error', listener);
  }

  enter(): void {
    if (this.#isOurs) return;
    this.#isOurs = true;
    this.#input.setRawMode(true);
    this.#input.resume();
    this.#output.write(escapes.enterAlternativeScreen + escapes.cursorHide + NO_WRAP);
    this.redraw();
  }

  leave(): void {
    if (!this.#isOurs) return;
    this.#isOurs = false;
    try {
      this.#output.write(WRAP + escapes.cursorShow + escapes.exitAlternativeScreen);
      this.#input.setRawMode(false);
    } catch {
      // The terminal is gone.
    }
    this.#input.pause();
  }

  /** The next `draw` writes all lines: something else may have written to the terminal. */
  redraw(): void {
    this.#shown = [];
  }

  /** Shows lines, no more than there are rows. Writes only those that have changed, at one time. */
  draw(lines: readonly string[]): void {
    if (!this.#isOurs) return;
    const all = this.#shown.length !== lines.length;
    const changes = lines.map((line, y) =>
      all || line !== this.#shown[y]
        ? escapes.cursorTo(0, y) + escapes.eraseLine + shownPainted(line)
        : '',
    );
    this.#shown = lines;
    const text = (all ? escapes.clearViewport : '') + changes.join('');
    if (text !== '') this.#output.write(escapes.synchronizedOutput(text));
  }
}
