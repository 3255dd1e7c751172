import { InvalidOptionError } from '@piecework/protocol';
import { namesIn } from './exec-command.js';
import type { Input } from './input.js';
import { say } from './progress-bar.js';
import type { WorkValues } from './work.js';

/**
 * Which `{name}` in a command of `run --exec` stand for a field of the item: those of the header, where the input has
 * one, or those of `--exec-fields`. What looks like one and is none is refused, or said, before anything runs.
 */

/** What is most likely meant as a placeholder; `{1}` or `{a.b}` may be anything. */
const WORD = /^[\p{L}_][\p{L}\p{N}_-]*$/u;

interface FieldValues extends WorkValues {
  readonly split?: string;
  readonly json: boolean;
}

/**
 * Answers the value of `--exec-fields` for the workers; the header is read for it, also from standard input.
 * @throws InvalidOptionError when a `{name}` is no column · as the input
 */
export async function execFieldsOf(values: FieldValues, input: Input): Promise<string | undefined> {
  const { exec, execFields, persistent, split, json } = values;
  if (exec === undefined) return undefined;
  if (!json && !persistent) sayForeign(exec);
  const names = namesIn(exec);
  const hasHeader = split === 'csv' || split === 'tsv';
  if (!hasHeader) {
    const known = execFields?.split(',') ?? [];
    const unknown = names.filter((name) => WORD.test(name) && !known.includes(name));
    if (unknown.length > 0 && !json && !persistent) sayLiteral(unknown, split);
    return execFields;
  }
  const quoted = [...exec.matchAll(/'\{([^{}']+)\}'/g)].map(([, name = '']) => name);
  if (names.length === 0 && quoted.length === 0 && execFields === undefined) return undefined;
  await input.begin();
  const { columns } = input;
  // Nothing but an empty file: nothing runs.
  if (!columns) return undefined;
  const asked = execFields?.split(',').find((name) => !columns.includes(name));
  if (execFields !== undefined && asked !== undefined)
    throw new InvalidOptionError(
      '--exec-fields',
      execFields,
      `columns of the input: ${list(columns)}`,
    );
  const wanted = execFields?.split(',') ?? columns;
  const refuse = (allowed: string) => new InvalidOptionError('--exec', exec, allowed);
  const inQuotes = quoted.find((name) => wanted.includes(name));
  if (inQuotes !== undefined)
    throw refuse(
      `{${inQuotes}} without single quotes: it needs none (with blanks, '{ ${inQuotes} }', it is text)`,
    );
  const unknown = names.find((name) => WORD.test(name) && !wanted.includes(name));
  if (unknown !== undefined)
    throw refuse(
      `no {${unknown}}, as the columns are ${list(wanted)}; with blanks, { ${unknown} }, it is text`,
    );
  if (columns.includes('index') && exec.includes('{index}'))
    throw refuse('no {index}, which is the number of the item, where a column is called index');
  const used = names.filter((name) => wanted.includes(name));
  const [first] = used;
  if (first !== undefined && persistent)
    throw refuse(`no {${first}} with --persistent: it gets lines`);
  input.require(used);
  return used.length === 0 ? undefined : used.join(',');
}

/** What stands for parts of an item, for its number or for its slot with GNU parallel. */
const FOREIGN = /(?<=^|[\s"=/])\{(?:\d+|\d*(?:\/{1,2}\.?|\.)|[#%])\}/g;

/** Says what is no placeholder here. In single quotes and in a word, as in `a{2}`, it means something else. */
function sayForeign(exec: string): void {
  const found = new Set(exec.replace(/'[^']*'/g, "''").match(FOREIGN) ?? []);
  if (found.size === 0) return;
  const stays = found.size === 1 ? 'stays as it is' : 'stay as they are';
  const said = [...found].join(', ');
  say(
    `--exec: ${said} ${stays}: here {} is the item and {index} its number; $(basename {}) and $(dirname {}) are parts of a path`,
  );
}

/** So many columns are listed. */
const LISTED = 20;

function list(columns: readonly string[]): string {
  const shown = columns.slice(0, LISTED).join(', ');
  return columns.length > LISTED ? `${shown} and ${columns.length - LISTED} others` : shown;
}

function sayLiteral(names: readonly string[], split: string | undefined): void {
  const shown = names.map((name) => `{${name}}`).join(', ');
  const cure =
    split === 'ndjson'
      ? `--exec-fields ${names.join(',')} makes it the field of that name`
      : 'only --split csv and tsv have columns';
  say(`--exec: ${shown} stays as it is: ${cure}`);
}
