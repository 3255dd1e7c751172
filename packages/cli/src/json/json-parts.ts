import { JsonText, knownJson } from '@piecework/protocol/contract';
import { ValueScan } from './value-scan.js';

/** Any value as JSON text; undefined for what JSON leaves out. */
export function jsonTextOf(value: unknown): JsonText | undefined {
  if (value instanceof JsonText) return value;
  const text = JSON.stringify(value);
  return text === undefined ? undefined : knownJson(text);
}

/** The value of a JsonText; any other value as it is. */
export const parsedOf = (value: unknown): unknown =>
  value instanceof JsonText ? value.value : value;

/** The text on one line. JSON has line ends only between values, where white space means nothing. */
export const oneLine = ({ text }: JsonText): string => text.replace(/[\r\n]\s*/g, '');

/** An object on one line, whose fields may be JsonText. */
export function objectLine(fields: object): string {
  const parts = Object.entries(fields).flatMap(([name, value]) => {
    const json = jsonTextOf(value);
    return json ? [`${JSON.stringify(name)}:${oneLine(json)}`] : [];
  });
  return `{${parts.join(',')}}`;
}

/** The elements of an array, each as the text has it. */
export const elementsOf = (array: JsonText): JsonText[] =>
  [...partsOf(array)].map((part) => knownJson(part));

/** The members of an object, each value as the text has it. Of a name that occurs twice, the last one counts. */
export function membersOf(object: JsonText): Map<string, JsonText> {
  const members = new Map<string, JsonText>();
  let name: string | undefined;
  for (const part of partsOf(object)) {
    if (name === undefined) name = JSON.parse(part) as string;
    else {
      members.set(name, knownJson(part));
      name = undefined;
    }
  }
  return members;
}

const BETWEEN = new Set(Buffer.from(' \t\r\n,:]}'));

/** The values in an array, or the names and values of an object in turn. */
function* partsOf({ text }: JsonText): Generator<string> {
  const bytes = Buffer.from(text.trim());
  for (let at = 1; at < bytes.length; ) {
    if (BETWEEN.has(bytes[at] as number)) at += 1;
    else {
      const end = new ValueScan().end(bytes, at);
      yield bytes.toString('utf8', at, end);
      at = end;
    }
  }
}
