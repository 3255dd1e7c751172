import { spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Heard, listen } from './listen.js';
import { endWithTest } from './processes.js';

/*
 * Runs the command line on a terminal, which the program `script` creates, and computes what a person sees there.
 */

const PROGRAM = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));

/** Whether the `script` of util-linux is installed. */
export const hasTerminals = spawnSync('script', ['--version']).stdout?.includes('util-linux');

/** A control sequence of a terminal, or a character. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control sequences begin with this character
const PARTS = /\u001b\[([?\d;]*)([A-Za-z])|./gsu;

const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;

interface OnTerminal {
  readonly redis: string;
  readonly columns?: number;
  readonly rows?: number;
  /** Besides that of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts `piecework …` on a terminal of so many columns; `type` sends keys, as '\x03' for Ctrl-C. It ends with the test. */
export function startOnTerminal(
  args: readonly string[],
  { redis, columns = 80, rows = 50, env = {} }: OnTerminal,
): Heard & { type(keys: string): void } {
  const command = [process.execPath, PROGRAM, ...args].map(quoted).join(' ');
  const line = `stty cols ${columns} rows ${rows}; exec ${command}`;
  const child = spawn('script', ['--quiet', '--flush', '--return', '-c', line, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env, REDIS_URL: redis, TERM: 'xterm' },
  });
  endWithTest(child);
  return { ...listen(child), type: (keys) => void child.stdin.write(keys) };
}

/** '3;1': row and column, from 1. */
function placeOf(parameter: string): [y: number, x: number] {
  const [row = 1, column = 1] = parameter.split(';').map((n) => Number(n || 1));
  return [row - 1, column - 1];
}

/** The lines on the screen after all of `output`, without blanks at their ends; the last one may be empty. */
export function screenOf(output: string, columns = 80): string[] {
  const lines: string[][] = [[]];
  let x = 0;
  let y = 0;
  const lineAt = (row: number) => {
    while (lines.length <= row) lines.push([]);
    return lines[row] as string[];
  };
  const control = (parameter: string, letter: string) => {
    const n = Number(parameter || 0);
    if (letter === 'A') y = Math.max(0, y - Math.max(1, n));
    if (letter === 'H') [y, x] = placeOf(parameter);
    if (letter === 'G') x = Math.max(1, n) - 1;
    if (letter === 'K') lineAt(y).splice(n === 2 ? 0 : x);
    if (letter !== 'J') return;
    if (n === 2) lines.length = 0;
    lineAt(y).splice(x);
    lines.splice(y + 1);
  };
  for (const [whole, parameter = '', letter] of output.matchAll(PARTS)) {
    if (letter) control(parameter, letter);
    else if (whole === '\r') x = 0;
    else if (whole === '\n') y += 1;
    else {
      if (x === columns) {
        x = 0;
        y += 1;
      }
      const line = lineAt(y);
      while (line.length < x) line.push(' ');
      line[x] = whole;
      x += 1;
    }
    lineAt(y);
  }
  return lines.map((line) => line.join('').trimEnd());
}
