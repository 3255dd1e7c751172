import { Readable } from 'node:stream';
import { jsonText, PayloadError } from '@piecework/protocol/contract';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonOf } from '../../packages/cli/dist/input/json-records.js';
import { isBad } from '../../packages/cli/dist/input/records.js';
import { elementsOf, membersOf, oneLine } from '../../packages/cli/dist/json/json-parts.js';
import { lossOf } from '../../packages/cli/dist/json/loss.js';

/*
 * The scanner of JSON, against JSON.parse: random values, written with random white space, in random chunks.
 */

const space = fc.stringMatching(/^[ \n\r\t]{0,3}$/);

/** A value as text, with white space wherever JSON may have it. */
const written = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(
      fc.constantFrom('3889108265204450030', '-0', '1.10', '1e400', '"\\ud800"', '"\\\\"', '"]}"'),
      fc.jsonValue({ maxDepth: 0 }).map((value) => JSON.stringify(value)),
      fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
    ),
    fc
      .array(fc.tuple(space, tie('value'), space).map((parts) => parts.join('')))
      .map((elements) => `[${elements.join(',')}]`),
    fc
      .array(
        fc
          .tuple(space, fc.string(), space, space, tie('value'), space)
          .map(([a, name, b, c, value, d]) => `${a}${JSON.stringify(name)}${b}:${c}${value}${d}`),
      )
      .map((members) => `{${members.join(',')}}`),
  ),
})).value;

/** Bytes in chunks of these lengths, again and again. */
function* chunksOf(text: string, lengths: readonly number[]): Generator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0, i = 0; at < bytes.length; i += 1) {
    const end = at + (lengths[i % lengths.length] as number);
    yield bytes.subarray(at, end);
    at = end;
  }
}
/** Each run reads a stream, so that fewer are enough. */
const RUNS = { numRuns: 40 };
const lengths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });

async function read(text: string, cut: readonly number[], path: string[] = []): Promise<string[]> {
  const found: string[] = [];
  for await (const record of jsonOf(path, 1_000_000)(Readable.from(chunksOf(text, cut)))) {
    if (isBad(record)) throw new PayloadError(record.wrong);
    found.push((record.item as { text: string }).text);
  }
  return found;
}

describe('an input of JSON', () => {
  test('has as items the elements of an array, byte for byte, in whatever chunks it comes', async () => {
    const elements = fc.array(fc.tuple(space, written, space));
    await fc.assert(
      fc.asyncProperty(elements, lengths, async (parts, cut) => {
        const text = `\n[${parts.map((part) => part.join('')).join(',')}] `;
        expect(await read(text, cut)).toEqual(parts.map(([, value]) => value));
      }),
      RUNS,
    );
  });

  test('has as items values that follow one another, and those of a path', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(written), written, lengths, async (values, other, cut) => {
        const wanted = values.flatMap((value) =>
          value.startsWith('[') ? elementsOf(jsonText(value)).map(({ text }) => text) : [value],
        );
        expect(await read(values.join('\n'), cut)).toEqual(wanted);
        const within = values.map((value) => `{"x":${other},"a b": {"c":${value}} ,"y":${other}}`);
        expect(await read(within.join(''), cut, ['a b', 'c'])).toEqual(wanted);
      }),
      RUNS,
    );
  });

  test('is refused, and never read as something else, when one of its characters is missing or another', async () => {
    const elements = fc.array(written, { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(
        elements,
        fc.nat(),
        fc.constantFrom('', ',', '"', ']', '/', 'N'),
        async (values, n, put) => {
          const text = `[${values.join(',')}]`;
          const at = n % text.length;
          const broken = text.slice(0, at) + put + text.slice(at + 1);
          let isJson = true;
          try {
            JSON.parse(broken);
          } catch {
            isJson = false;
          }
          const items = await read(broken, [7]).catch((error: unknown) => error);
          // Without its first bracket, the rest may be values that follow one another.
          if (isJson) expect(items).toBeInstanceOf(Array);
          else if (at > 0) expect(items).toBeInstanceOf(PayloadError);
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe('JSON that is kept as text', () => {
  test('has the members and elements that JSON.parse finds, and is the same value on one line', () => {
    fc.assert(
      fc.property(written, space, space, (text, before, after) => {
        const json = jsonText(before + text + after);
        const { value } = json;
        expect(JSON.parse(oneLine(json))).toEqual(value);
        expect(oneLine(json)).not.toMatch(/[\r\n]/);
        if (Array.isArray(value))
          expect(elementsOf(json).map((element) => element.value)).toEqual(value);
        else if (typeof value === 'object' && value !== null)
          expect(Object.fromEntries([...membersOf(json)].map(([k, v]) => [k, v.value]))).toEqual(
            value,
          );
      }),
    );
  });

  test.for<[string, string | undefined]>([
    ['{"id":3889108265204450030}', '3889108265204450000 instead of 3889108265204450030'],
    ['[9007199254740993]', '9007199254740992 instead of 9007199254740993'],
    ['[1e400]', 'Infinity instead of 1e400'],
    ['0.12345678901234567891', '0.12345678901234568 instead of 0.12345678901234567891'],
    ['{"a":{"b":1},"b":2,"a":3}', 'only the last value of the key "a", which occurs twice'],
    ['{"a":[{"b":1},{"b":1}],"b":{"a":1},"c":["x","x"]}', undefined],
    ['[9007199254740992,1.10,0.1,1E5,-0,12345678901234567e-30]', undefined],
    ['{"s":"3889108265204450030 \\" \\\\","t\\\\":":"}', undefined],
  ])('loses in a handler what it should: %s', ([text, loss]) => {
    expect(lossOf(jsonText(text))).toBe(loss);
  });
});
