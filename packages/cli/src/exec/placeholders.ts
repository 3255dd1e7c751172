import { NAMED } from './field-name.js';

/**
 * Finds the placeholders of a command, and whether each stands outside or inside double quotes. It follows the quotes
 * of the POSIX shell, `$(…)`, comments, and plain `${…}` and `$((…))`. It does not parse everything: at text whose
 * quotes differ between shells, or that it would have to parse as a whole, it gives up, and every placeholder from
 * there on is barred. So it never takes a place for something that it is not.
 */

export interface Placeholder {
  /** `{ column }`: its name. */
  readonly of: 'item' | 'index' | { readonly column: string };
  readonly quoted: boolean;
  /** Whether it is a part of a longer word, as in `x={}`. */
  readonly attached: boolean;
  /** Why it cannot be replaced, with the way out, in which `{}` stands for the placeholder. */
  readonly barred?: string;
}

/** A placeholder, or the text between two. */
export type Part = string | Placeholder;

const IN_SINGLE_QUOTES =
  'in single quotes: write "$1" there, as in sh -c \'wc -c "$1"\' sh {}; with blanks, { } is text';

const IN_PATTERN = 'in a word behind an unquoted [, which begins a pattern: write "[{}]" for text';

const behind = (what: string) =>
  `in or behind ${what}: begin with item="{}"; and write "$item" there`;

/** Expansions without quotes, backslashes or other expansions in them. */
const PLAIN = /\$(?:\{[^'"`\\${}()<\n]+\}|\(\([^'"`\\${}()<#\n]*\)\)|[\w@*#?$!-])/y;

interface Lost {
  readonly at: RegExp;
  readonly what: string;
  /** Only outside double quotes; `word`: only at the beginning of a word. */
  readonly only?: 'unquoted' | 'word';
}

/** Where the scanner gives up. */
const LOST: readonly Lost[] = [
  { at: /`/y, what: 'backquotes' },
  { at: /\$\(\(/y, what: '$((…))' },
  { at: /\$\[/y, what: '$[…]' },
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is for people
  { at: /\$\{/y, what: '${…}' },
  { at: /\$'/y, what: "$'…'", only: 'unquoted' },
  { at: /<</y, what: '<<', only: 'unquoted' },
  { at: /(?<![ \t\n])\\\n/y, what: 'a word that continues on the next line' },
  // bash evaluates these as arithmetic, which can run commands.
  { at: /\(\(/y, what: '((…))', only: 'unquoted' },
  { at: /\[\[(?=[ \t\n])/y, what: '[[ … ]]', only: 'word' },
  { at: /[A-Za-z_]\w*\[(?=[\s\S]*\{[\s\S]*\]\+?=)/y, what: 'a subscript', only: 'word' },
  { at: /[A-Za-z_]\w*\+?=\(/y, what: 'an array (…)', only: 'word' },
  // bash expands the name of a file there a second time.
  {
    at: />&(?![ \t]*(?:\d+|-)(?:[ \t\n;&|)<>]|$))/y,
    what: '>& and a file: write >file 2>&1,',
    only: 'unquoted',
  },
];

/** In `$(…)` the brackets of its patterns are not in pairs. */
const CASE: Lost = { at: /case(?![\w-])/y, what: 'case within $(…)', only: 'word' };

/** @param isColumn whether the name in `{name}` is a placeholder */
export function partsOf(command: string, isColumn: (name: string) => boolean): Part[] {
  const parts: Part[] = [];
  /** What surrounds the current place: double quotes, or a command. */
  const within: ('"' | CommandPlace)[] = [commandPlace()];
  let lost: string | undefined;
  let from = 0;
  let at = 0;
  /** Whether a word begins here. */
  let fresh = true;

  const put = (found: Found, quoted: boolean, barred?: string) => {
    const text = command.slice(from, at);
    const next = command[at + found.length] ?? '';
    const attached = !quoted && !(fresh && (next === '' || ENDS_WORD.test(next)));
    parts.push(text, { of: found.of, quoted, attached, ...(barred ? { barred } : {}) });
    at += found.length;
    from = at;
  };

  while (at < command.length) {
    const letter = command[at] ?? '';
    const place = within.at(-1);
    const quoted = place === '"';
    lost ??= lostAt(command, at, fresh && !quoted, quoted, within.length > 1);
    const found = placeholderAt(command, at, isColumn);
    if (found) {
      put(found, quoted, lost ?? (within.some(isPattern) ? IN_PATTERN : undefined));
      fresh = false;
    } else if (letter === '\\') {
      // A line that continues behind a blank ends no word.
      fresh &&= command[at + 1] === '\n';
      at += 2;
    } else if (lost !== undefined) {
      at += 1;
    } else if (letter === "'" && !quoted) {
      const end = endOf(command, "'", at + 1);
      for (at += 1; at < end; ) {
        const inside = placeholderAt(command, at, isColumn);
        if (inside) put(inside, false, IN_SINGLE_QUOTES);
        else at += 1;
      }
      fresh = false;
    } else if (command.startsWith('$(', at) && !plainAt(command, at)) {
      within.push(commandPlace());
      at += 2;
      fresh = true;
    } else if (letter === '#' && fresh && !quoted) {
      at = endOf(command, '\n', at);
    } else {
      if (letter === '"') {
        if (quoted) within.pop();
        else within.push('"');
      } else if (place !== undefined && place !== '"') {
        if (letter === '[') place.pattern = true;
        else if (BEGINS_WORD.test(letter)) place.pattern = false;
        if (letter === '(') place.brackets += 1;
        else if (letter === ')' && place.brackets > 0) place.brackets -= 1;
        else if (letter === ')' && within.length > 1) within.pop();
      }
      // Behind `$(…)` a word continues, and a `#` is no comment.
      fresh = !quoted && BEGINS_WORD.test(letter) && within.at(-1) === place;
      at += plainAt(command, at) || 1;
    }
  }
  parts.push(command.slice(from));
  return parts;
}

interface CommandPlace {
  /** Number of open brackets. */
  brackets: number;
  /** Whether an unquoted `[` is in the current word: what follows may be a set of characters. */
  pattern: boolean;
}

const commandPlace = (): CommandPlace => ({ brackets: 0, pattern: false });

const isPattern = (place: '"' | CommandPlace) => place !== '"' && place.pattern;

const BEGINS_WORD = /[ \t\n;&|()<>]/;
const ENDS_WORD = /[ \t\n;&|)<>]/;

interface Found {
  readonly of: Placeholder['of'];
  readonly length: number;
}

function placeholderAt(
  command: string,
  at: number,
  isColumn: (name: string) => boolean,
): Found | undefined {
  if (command.startsWith('{}', at)) return { of: 'item', length: 2 };
  if (command.startsWith('{index}', at)) return { of: 'index', length: 7 };
  NAMED.lastIndex = at;
  const [whole = '', column = ''] = NAMED.exec(command) ?? [];
  return whole !== '' && isColumn(column) ? { of: { column }, length: whole.length } : undefined;
}

/** The length of a plain expansion that begins here; 0: none does. */
function plainAt(command: string, at: number): number {
  PLAIN.lastIndex = at;
  return PLAIN.exec(command)?.[0].length ?? 0;
}

function lostAt(
  command: string,
  at: number,
  fresh: boolean,
  quoted: boolean,
  nested: boolean,
): string | undefined {
  if (plainAt(command, at)) return undefined;
  const found = (nested ? [...LOST, CASE] : LOST).find(({ at: pattern, only }) => {
    if ((only === 'unquoted' && quoted) || (only === 'word' && !fresh)) return false;
    pattern.lastIndex = at;
    return pattern.test(command);
  });
  return found && behind(found.what);
}

/** The place behind the next `what`, or the end of the text. */
function endOf(text: string, what: string, from: number): number {
  const found = text.indexOf(what, from);
  return found < 0 ? text.length : found + 1;
}
