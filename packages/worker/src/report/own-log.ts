import { shownText } from '@piecework/protocol/contract';
import { type Logger, pino } from 'pino';

/** A log on standard error: of a worker process, and of a worker without a `logger` of its own. */
export function openLog(level: string, format: 'text' | 'json'): Logger {
  if (format === 'text') {
    const write = (line: string) => void process.stderr.write(`${fitted(logText(line))}\n`);
    return pino({ name: 'piecework', level }, { write });
  }
  const file = pino.destination({ dest: 2, sync: true });
  // JSON leaves characters that a terminal obeys, or that nobody sees, as they are.
  return pino({ name: 'piecework', level }, { write: (line) => file.write(shownText(line, '\n')) });
}

/** Characters before the message: `12:03:44 warn  `. */
const INDENT = 15;
/** A terminal with fewer columns breaks lines by itself. */
const FEWEST_COLUMNS = 40;

/** Breaks a line between words where a terminal would break it inside of words. */
export function fitted(
  text: string,
  { isTTY, columns = 80 }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'> = process.stderr,
): string {
  if (!isTTY || columns < FEWEST_COLUMNS || text.length <= columns) return text;
  const room = columns - INDENT;
  const lines = text.slice(INDENT).matchAll(new RegExp(`(.{1,${room}})(?: +|$)|.{${room}}`, 'gm'));
  const broken = [...lines].map(([whole, words]) => words ?? whole);
  return text.slice(0, INDENT) + broken.join(`\n${' '.repeat(INDENT)}`);
}

/** Fields that are the same in every line, or printed at its beginning. */
const LEFT_OUT = new Set(['level', 'time', 'pid', 'hostname', 'name', 'msg']);

/**
 * A log line in words: `12:03:44 warn  what happened · requestId numbers · index 3`. The name of an error is left out
 * beside the error. Texts of handlers may be anything: each log line is one line.
 */
export function logText(line: string): string {
  const fields = JSON.parse(line) as Record<string, unknown>;
  const level = pino.levels.labels[Number(fields['level'])] ?? 'info';
  const time = new Date(Number(fields['time'])).toTimeString().slice(0, 8);
  const rest = Object.entries(fields)
    .filter(([name]) => !LEFT_OUT.has(name) && !(name === 'error' && 'err' in fields))
    .map(([name, value]) => `${name} ${shown(value)}`);
  return shownText([`${time} ${level.padEnd(5)} ${fields['msg']}`, ...rest].join(' · '));
}

/** An error by its message; only JSON lines contain its stack. */
function shown(value: unknown): string {
  if (typeof value === 'string') return value;
  const error = value as { type?: unknown; message?: unknown } | null;
  if (typeof error?.message !== 'string') return JSON.stringify(value);
  return `${error.type ?? 'Error'}: ${error.message}`;
}
