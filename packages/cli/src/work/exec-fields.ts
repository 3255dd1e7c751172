import { InvalidOptionError } from '@piecework/protocol/contract';
import { ExecCommand, namesIn } from '../exec/command.js';
import type { Input } from '../input/input.js';
import { say } from '../terminal/print.js';
import type { WorkValues } from './check-work.js';

/**
 * Finds which `{name}` in a command of `run --exec` are fields of the item: columns of the header, where the input has
 * one, or the names in `--exec-fields`. Before anything runs, a `{name}` that looks like a field but is not one is
 * refused, or the run says that it stays unchanged.
 */

/** A name that is most likely meant as a placeholder. `{1}` or `{a.b}` may be anything. */
const WORD = /^[\p{L}_][\p{L}\p{N}_-]*$/u;

interface FieldValues extends WorkValues {
  readonly split?: string;
  readonly csvHeader?: string;
  readonly json: boolean;
}

/**
 * The value of `--exec-fields` for the workers. Reads the header of the input for it, also from standard input.
 * @throws InvalidOptionError when a `{name}` is not a column · errors of the input
 */
export async function execFieldsOf(values: FieldValues, input: Input): Promise<string | undefined> {
  const { exec, execFields, execInput, persistent, split, csvHeader, json } = values;
  if (exec === undefined) return undefined;
  if (!json && !persistent) sayForeign(exec);
  const names = namesIn(exec);
  const hasHeader = (split === 'csv' || split === 'tsv') && csvHeader !== 'none';
  if (!hasHeader) {
    const known = execFields?.split(',') ?? [];
    const unknown = names.filter((name) => WORD.test(name) && !known.includes(name));
    const [first] = unknown;
    if (first !== undefined && csvHeader === 'none' && !persistent)
      throw new InvalidOptionError(
        '--exec',
        exec,
        `no {${first}} with --csv-header none: --csv-header id,name gives names ({ ${first} } with blanks is text)`,
      );
    if (unknown.length > 0 && !json && !persistent) sayLiteral(unknown, split);
    return execFields;
  }
  if (!exec.includes('{') && execFields === undefined) return undefined;
  await input.begin();
  const { columns } = input;
  // All files are empty: nothing runs.
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
  if (!persistent) new ExecCommand(exec, execInput, wanted);
  const unknown = names.find((name) => WORD.test(name) && !wanted.includes(name));
  if (unknown !== undefined)
    throw refuse(
      `no {${unknown}}, as the columns are ${list(wanted)} ({ ${unknown} } with blanks is text)`,
    );
  if (columns.includes('index') && exec.includes('{index}'))
    throw refuse('no {index} where a column is named index: {index} is the number of the item');
  const used = names.filter((name) => wanted.includes(name));
  const [first] = used;
  if (first !== undefined && persistent)
    throw refuse(`no {${first}} with --persistent: the program gets lines`);
  input.require(used);
  return used.length === 0 ? undefined : used.join(',');
}

/** The placeholders of GNU parallel for parts of an item, its number or its slot. */
const FOREIGN = /(?<=^|[\s"=/])\{(?:\d+|\d*(?:\/{1,2}\.?|\.)|[#%])\}/g;

/**
 * Says which of these stay unchanged here. In single quotes and within a word, as in `a{2}`, they mean other things.
 */
function sayForeign(exec: string): void {
  const found = new Set(exec.replace(/'[^']*'/g, "''").match(FOREIGN) ?? []);
  if (found.size === 0) return;
  const stays = found.size === 1 ? 'stays as it is' : 'stay as they are';
  const said = [...found].join(', ');
  say(
    `--exec: ${said} ${stays}: here {} is the item and {index} its number; "$(basename {})" and "$(dirname {})" are parts of a path`,
  );
}

/** The number of columns that a message lists. */
const LISTED = 20;

function list(columns: readonly string[]): string {
  const shown = columns.slice(0, LISTED).join(', ');
  return columns.length > LISTED ? `${shown} and ${columns.length - LISTED} others` : shown;
}

function sayLiteral(names: readonly string[], split: string | undefined): void {
  const shown = names.map((name) => `{${name}}`).join(', ');
  const cure =
    split === 'ndjson' || split === 'json'
      ? `--exec-fields ${names.join(',')} makes it the field of that name`
      : 'only --split csv and tsv have columns';
  say(`--exec: ${shown} stays as it is: ${cure}`);
}
