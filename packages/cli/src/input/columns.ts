import { PayloadError } from '@piecework/protocol/contract';

/** Makes items of the fields of rows. */
export interface Columns {
  /** Undefined: each row is an array. */
  readonly names: readonly string[] | undefined;
  /** Number of fields of a row, also of those that are left out. */
  readonly width: number;
  /** In words, for a person. */
  readonly shown: string;
  /** The item of a row; or, as a text behind `line 7 `, why it is none. */
  itemOf(fields: readonly string[]): { readonly item: unknown } | string;
}

/** Rows of as many fields as the first one, without names. */
export function unnamed(count: number): Columns {
  return {
    names: undefined,
    width: count,
    shown: `${counted(count)}, without names: each row is an array`,
    itemOf: (fields) =>
      fields.length === count
        ? { item: fields }
        : `has ${counted(fields.length)}, the first row ${counted(count)}`,
  };
}

/** A number, a date or a time. */
const VALUE = /^[+-]?[.,]?\d[\d.,:/ +-]*(?:e[+-]?\d+|[TZ][\d.:+Z-]*)?%?$/i;
/** How many names a message repeats, each so long at most. */
const [SHOWN_NAMES, SHOWN_LENGTH] = [3, 40];

/** Why names that the first row has given seem to be data, and what to do then; undefined: they do not. */
export function dataInHeader(names: readonly string[]): string | undefined {
  // Headers such as `region,2024,2025` begin with a word.
  if (!VALUE.test(names[0] ?? '')) return undefined;
  const shown = names.slice(0, SHOWN_NAMES).map((name) => name.slice(0, SHOWN_LENGTH));
  const more = names.length > shown.length ? ', …' : '';
  return `the first row (${shown.join(', ')}${more}) is taken for the header; if it is data, give --csv-header NAMES or none`;
}

/**
 * Rows with names. Columns without a name, as spreadsheets write them behind the last one, are left out while they are
 * empty, and need not be there.
 * @param by what has given the names: `the header`
 * @param place its line
 * @throws PayloadError about the names
 */
export function named(names: readonly string[], by: string, place?: string): Columns {
  const at = place === undefined ? by : `${place}: ${by}`;
  const used = names.filter((name) => name !== '');
  if (used.length === 0) throw new PayloadError(`${at} has no names`);
  // One of them would be lost.
  const twice = used.find((name, i) => used.indexOf(name) !== i);
  if (twice !== undefined) {
    const hint = place === undefined ? undefined : dataInHeader(used);
    const more = `; ${hint ?? 'rename one of them, or name all columns by --csv-header'}`;
    throw new PayloadError(`${at} has ${JSON.stringify(twice)} twice${more}`);
  }
  const least = names.findLastIndex((name) => name !== '') + 1;
  const left = names.length - used.length;
  const columns = used.length === 1 ? '1 column' : `${used.length} columns`;
  const rest = left === 0 ? '' : `; ${left} more without a name, left out while empty`;
  return {
    names: used,
    width: names.length,
    shown: `${columns}: ${used.join(', ')}${rest}`,
    itemOf: (fields) => {
      if (fields.length < least || fields.length > names.length)
        return `has ${counted(fields.length)}, ${by} ${counted(names.length)}`;
      const lost = fields.findIndex((field, i) => field !== '' && names[i] === '');
      if (lost >= 0) return `has a value in column ${lost + 1}, which has no name in the header`;
      const entries = fields.flatMap((field, i) => (names[i] === '' ? [] : [[names[i], field]]));
      // `fromEntries` also accepts names such as `__proto__`.
      return { item: Object.fromEntries(entries) };
    },
  };
}

const counted = (fields: number) => (fields === 1 ? '1 field' : `${fields} fields`);
