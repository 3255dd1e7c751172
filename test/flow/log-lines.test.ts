import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { fitted } from '../../packages/worker/dist/report/own-log.js';

const line =
  '12:03:44 warn  the queue cannot be read; its metrics are left out until it can · err ConnectionError: no answer within 2000 ms · queue req';

test('a log line on a terminal breaks between words, and below its message', () => {
  expect(fitted(line, { isTTY: true, columns: 80 })).toBe(
    [
      '12:03:44 warn  the queue cannot be read; its metrics are left out until it can ·',
      '               err ConnectionError: no answer within 2000 ms · queue req',
    ].join('\n'),
  );
  const word = `12:03:44 info  ${'x'.repeat(100)} end`;
  expect(fitted(word, { isTTY: true, columns: 80 })).toBe(
    `12:03:44 info  ${'x'.repeat(65)}\n${' '.repeat(15)}${'x'.repeat(35)} end`,
  );
  for (const columns of [80, 20, 40, 79])
    expect(fitted(line, { isTTY: true, columns }).split(/\s+/)).toEqual(line.split(/\s+/));
});

test('a log line in a pipe, in a file or on a very narrow terminal stays whole', () => {
  expect(fitted(line, { isTTY: false, columns: 80 })).toBe(line);
  expect(fitted(line, { isTTY: true, columns: 30 })).toBe(line);
  expect(fitted(line, { isTTY: true, columns: 200 })).toBe(line);
});

test('a log line of JSON has characters that a terminal obeys as escapes, and is the same data', () => {
  const text = '\u009b31m \u202e \u2028 \u0085 \u001b[0m é 👩‍👩‍👧‍👦 \n';
  const { href } = new URL('../../packages/worker/dist/report/own-log.js', import.meta.url);
  const program = `import { openLog } from ${JSON.stringify(href)};
    openLog('info', 'json').info({ text: process.argv[1] }, process.argv[1]);`;
  const { stderr } = spawnSync('node', ['--input-type=module', '-e', program, text], {
    encoding: 'utf8',
  });
  expect(stderr).toMatch(/^[^\p{Cc}\p{Zl}\u202e]*\n$/u);
  expect(JSON.parse(stderr)).toMatchObject({ text, msg: text });
});
