import type { Finding } from 'piecework';
import { wrapped } from '../terminal/table.js';

/** The column in which the text of a finding begins. */
const INDENT = 22;

export function findingLines({ level, check, what, advice }: Finding): string {
  const head = `${level.padEnd(9)}${check.padEnd(13)}${wrapped(what, INDENT)}`;
  return advice === '' ? head : `${head}\n${' '.repeat(INDENT)}→ ${wrapped(advice, INDENT + 2)}`;
}
