import { expect, test } from 'vitest';
import { foundIn } from '../../tools/bench/src/written-commands.js';

const command = (...args: readonly string[]) =>
  `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`;

const PAYLOAD = 'x'.repeat(10_000);
const EVALSHA = command('evalsha', 'a'.repeat(40), '2', 'one', 'two', PAYLOAD);
const POP = command('BLMPOP', '0.5', '3', 'a', 'b', 'c', 'RIGHT', 'COUNT', '10');
const SET = command('set', 'name', PAYLOAD, 'PX', '12');

const CASES = {
  'a script': [EVALSHA, { commands: 1, scripts: 1 }],
  'a pop from several lists': [POP, { commands: 1, scripts: 0 }],
  'several commands': [SET + EVALSHA + POP, { commands: 3, scripts: 1 }],
  'a payload that is not ASCII': [
    command('set', 'name', 'ü'.repeat(9)) + EVALSHA,
    { commands: 2, scripts: 1 },
  ],
  'a payload like a command': [
    command('set', 'name', `*1\r\n$4\r\nping\r\nevalsha\r\n`),
    { commands: 1, scripts: 0 },
  ],
  'no whole command': [EVALSHA.slice(0, -20), { commands: 1, scripts: 1 }],
  'the end of a command': [`${PAYLOAD}\r\n`, { commands: 0, scripts: 0 }],
  nothing: ['', { commands: 0, scripts: 0 }],
} as const;

test.for(Object.entries(CASES))('counts in %s', ([, [text, found]]) => {
  expect(foundIn(text)).toEqual(found);
  expect(foundIn(Buffer.from(text))).toEqual(found);
});
