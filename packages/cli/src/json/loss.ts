import type { JsonText } from '@piecework/protocol/contract';

/**
 * What JSON.parse loses of a text, in words: the digits of a number that JavaScript has no number for, or the first
 * values of a key that occurs again in its object. Undefined: nothing.
 */
export function lossOf({ text }: JsonText): string | undefined {
  const names: Set<string>[] = [];
  const token = /[{}"]|-?\d[\d.eE+-]*/g;
  for (let found = token.exec(text); found; found = token.exec(text)) {
    const [what] = found;
    if (what === '{') names.push(new Set());
    else if (what === '}') names.pop();
    else if (what === '"') {
      const end = stringEnd(text, found.index);
      token.lastIndex = end;
      if (!/^\s*:/.test(text.slice(end, end + 100))) continue;
      const name = text.slice(found.index, end);
      if (names.at(-1)?.has(name))
        return `only the last value of the key ${name}, which occurs twice`;
      names.at(-1)?.add(name);
    } else if (losesDigits(what)) return `${Number(what)} instead of ${what}`;
  }
  return undefined;
}

/** The index behind the quote that ends the string that begins at `from`. */
function stringEnd(text: string, from: number): number {
  for (let end = text.indexOf('"', from + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === '\\') escapes += 1;
    if (escapes % 2 === 0) return end + 1;
  }
}

/** The most decimal digits that programs write for a number of 64 bits, which is then the same number again. */
const DIGITS = 17;

function losesDigits(number: string): boolean {
  if (/^-?\d+$/.test(number)) return !Number.isSafeInteger(Number(number)) && !isExact(number);
  const [mantissa = ''] = number.replace(/^-?[0.]*/, '').split(/e/i, 1);
  return !Number.isFinite(Number(number)) || mantissa.replace('.', '').length > DIGITS;
}

/** Whether JavaScript has this whole number. */
const isExact = (integer: string) =>
  Number.isFinite(Number(integer)) && BigInt(integer) === BigInt(Number(integer));
