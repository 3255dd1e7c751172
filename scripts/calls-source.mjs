// Writes the module by which TypeScript calls the scripts, from the headers in lua/. It takes keys and arguments by
// name and answers an object for each reply.
import { parseHeader, readSource, scriptNames } from './lua-source.mjs';

const ARGUMENT = {
  int: 'number',
  string: 'string',
  value: 'Argument',
  values: 'readonly Argument[]',
};
const REPLY = {
  int: 'number',
  ints: 'readonly number[]',
  text: 'string',
  outcome: "'succeeded' | 'failed' | 'cancelled'",
  list: 'readonly string[]',
  pairs: 'Readonly<Record<string, string>>',
  record: 'StreamRow',
  any: 'unknown',
};

const isOptional = ({ type }) => /\?$|\|''$/.test(type);
const plain = (type) => type.replace(/\?$|\|''$/, '');

/** A property of an interface, with what the header says about it. */
function property({ name, about }, type, optional = false) {
  const words = about ? `/** ${about.replaceAll('*/', '* /')} */ ` : '';
  return `${words}readonly ${name}${optional ? '?' : ''}: ${type}${optional ? ' | undefined' : ''};`;
}

const shape = (lines) => `{\n${lines.map((line) => `      ${line}\n`).join('')}    }`;

function keyType({ type, each, rest }) {
  if (type !== 'group') return rest ? 'readonly string[]' : 'string';
  return `readonly { ${each.map(({ name }) => `readonly ${name}: string`).join('; ')} }[]`;
}

function keyValue({ name, type, each, rest }) {
  if (type !== 'group') return rest ? `...k.${name}` : `k.${name}`;
  return `...k.${name}.flatMap((e) => [${each.map((e) => `e.${e.name}`).join(', ')}])`;
}

function keysOf({ keys }) {
  const lines = keys.map((key) => property(key, keyType(key)));
  const values = keys.map(keyValue);
  return `keys: (k: ${shape(lines)}): string[] => [${values.join(', ')}],`;
}

function argumentType(argument) {
  if (argument.type === 'group') {
    const each = argument.each.map((one) =>
      property(one, ARGUMENT[plain(one.type)], isOptional(one)),
    );
    return `readonly { ${each.join(' ')} }[]`;
  }
  const type = ARGUMENT[plain(argument.type)];
  return argument.rest ? `readonly ${type}[]` : type;
}

function argumentValue(argument) {
  const { name, rest, type, each } = argument;
  if (type === 'group') return `...a.${name}.flatMap((e) => [${each.map(memberValue).join(', ')}])`;
  if (rest) return `...a.${name}`;
  if (type.endsWith("|''")) return `a.${name} ?? ''`;
  if (type.endsWith('?')) return `...(a.${name} === undefined ? [] : [a.${name}])`;
  return `a.${name}`;
}

/** A list among the values of a group follows its length. */
function memberValue({ name, type }) {
  if (type === 'values') return `e.${name}.length, ...e.${name}`;
  return type.endsWith("|''") ? `e.${name} ?? ''` : `e.${name}`;
}

function argumentsOf({ args }) {
  if (args.length === 0) return 'args: (_: object = {}): Argument[] => [],';
  const lines = args.map((argument) =>
    property(argument, argumentType(argument), isOptional(argument)),
  );
  return `args: (a: ${shape(lines)}): Argument[] => [${args.map(argumentValue).join(', ')}],`;
}

function replyType(field) {
  if (field.type === 'group') {
    const each = field.each.map(({ name, type }) => `readonly ${name}: ${REPLY[type]}`);
    return `readonly { ${each.join('; ')} }[]`;
  }
  const type = REPLY[plain(field.type)];
  return field.rest ? `readonly ${type}[]` : type;
}

function read(type, value) {
  if (type === 'int') return `Number(${value})`;
  if (type === 'ints') return `numbersIn(${value})`;
  if (type === 'int?') return `numberIn(${value})`;
  if (type === 'text') return `textIn(${value})`;
  if (type === 'text?') return `optionalText(${value})`;
  if (type === 'pairs') return `pairsIn(${value})`;
  return `${value} as ${REPLY[type]}`;
}

function replyValue(field, i) {
  const { name, type, rest, each } = field;
  if (type === 'numbers')
    return field.names.map((one, n) => `${one}: ${name}[${n}] as number`).join(', ');
  if (type === 'group') {
    const members = each.map((e, n) => `${e.name}: ${read(e.type, `flat[i + ${n}]`)}`);
    const [flat, from] = rest ? ['r', i] : [`r[${i}]`, 0];
    return `${name}: groupsIn(${flat}, ${from}, ${each.length}, (flat, i) => ({ ${members.join(', ')} }))`;
  }
  if (rest) return `${name}: r.slice(${i}) as ${REPLY[type]}[]`;
  return `${name}: ${read(type, `r[${i}]`)}`;
}

function repliesOf({ replies, each }) {
  const types = replies.map(({ word, fields }) => {
    const properties = fields.flatMap((field) =>
      field.type === 'numbers'
        ? field.names.map((one) => property({ name: one }, 'number'))
        : property(field, replyType(field), isOptional(field)),
    );
    return `{ ${[`readonly verdict: '${word}';`, ...properties].join(' ')} }`;
  });
  const cases = replies.map(({ word, fields }) => {
    const values = [`verdict: '${word}'`, ...fields.map((field, i) => replyValue(field, i + 1))];
    const joined = fields.findIndex(({ type }) => type === 'numbers');
    const returns = `return { ${values.join(', ')} };`;
    if (joined < 0) return `        case '${word}':\n          ${returns}\n`;
    const splits = `const ${fields[joined].name} = numbersIn(r[${joined + 1}]);`;
    return `        case '${word}': {\n          ${splits}\n          ${returns}\n        }\n`;
  });
  const type = types.map((one) => `      | ${one}\n`).join('');
  if (each)
    return `reply(all: readonly unknown[]): readonly (\n${type}    )[] {
      return all.map((one) => {
        const r = one as readonly unknown[];
        switch (r[0]) {
${cases.join('')}        default:
          throw unknownReply(r);
        }
      });
    },`;
  return `reply(r: readonly unknown[]):\n${type}    {
      switch (r[0]) {
${cases.join('')}        default:
          throw unknownReply(r);
      }
    },`;
}

/** The text of calls.generated.ts. */
export function buildCalls() {
  const entries = scriptNames.map((name) => {
    const header = parseHeader(name, readSource(name));
    return `  /** ${header.purpose} */
  '${name}': {
    ${keysOf(header)}
    ${argumentsOf(header)}
    ${repliesOf(header)}
  },
`;
  });
  return `// Written by scripts/build-lua.mjs from the headers in lua/. DO NOT EDIT: run \`npm run lua\`.
import type { Argument } from '../redis/client.js';
import {
  groupsIn,
  numberIn,
  numbersIn,
  optionalText,
  pairsIn,
  type StreamRow,
  textIn,
  unknownReply,
} from './script-values.js';

export const calls = {
${entries.join('')}} as const;
`;
}
