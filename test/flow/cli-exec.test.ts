import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { STARTS } from '../support/cli.js';
import { jsonLines, test } from '../support/command-line.js';
import { freshName } from '../support/given.js';
import { runs } from '../support/processes.js';
import { until } from '../support/until.js';

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('request');

interface Line {
  index: number;
  status: string;
  value?: unknown;
  error?: { name: string; message: string; stack: string };
}

describe('a program for each sub-request', () => {
  test('gets the payload on standard input, and its standard output is the result', async ({
    commandLine: { file, run },
  }) => {
    const words = Array.from({ length: 400 }, (_, i) => `${'wörd'.repeat(i % 23)}x`);
    const input = await file('words.txt', `${words.join('\n')}\n`);
    const ended = await run('run', '--input', input, '--exec', 'wc -c', '--out', '-');
    expect(ended.code, ended.stderr).toBe(0);
    const values = jsonLines<Line>(ended.stdout).map(({ value }) => Number(value));
    expect(values).toEqual(words.map((word) => Buffer.byteLength(word)));
  });

  test('gets items that are not strings as JSON, its request in the environment, and may answer JSON', async ({
    commandLine: { file, run },
  }) => {
    const input = await file('objects.ndjson', '{"a":[1,2]}\n7\n"text"\n');
    const say = 'printf \'{"got":\'; sed "s/text/1/"; printf \',"as":"%s %s %s"}\\n\'';
    const command = `${say} "$PIECEWORK_REQUEST_ID" "$PIECEWORK_INDEX" "$PIECEWORK_ATTEMPT"`;
    const ended = await run(
      ...['run', '--input', input, '--split', 'ndjson', '--id', `${unique}-told`, '--out', '-'],
      ...['--exec', command, '--exec-output', 'json'],
    );
    expect(ended.code, ended.stderr).toBe(0);
    expect(jsonLines<Line>(ended.stdout).map(({ value }) => value)).toEqual([
      { got: { a: [1, 2] }, as: `${unique}-told 0 1` },
      { got: 7, as: `${unique}-told 1 1` },
      { got: 1, as: `${unique}-told 2 1` },
    ]);
  });

  test('fails its sub-request by any exit code but 0, and the end of its standard error is kept', async ({
    commandLine: { file, run },
  }) => {
    const input = await file('some.txt', 'ok\n3\nkill\n');
    const command = [
      'read -r word || true',
      'case "$word" in ok) echo fine; exit 0;; kill) kill -9 $$;; esac',
      'echo first >&2; echo "no such thing" >&2; exit "$word"',
    ].join('; ');
    const ended = await run('run', '--input', input, '--exec', command, '--out', '-');
    expect(ended.code).toBe(1);
    const [fine, three, killed] = jsonLines<Line>(ended.stdout);
    expect(fine).toEqual({ index: 0, status: 'succeeded', value: 'fine' });
    expect(three?.error).toEqual({
      name: 'ExitError',
      message: 'exit code 3: no such thing',
      stack: 'first\nno such thing',
    });
    expect(killed?.error).toMatchObject({ name: 'ExitError', message: 'ended by SIGKILL' });
  });

  test('fails when it writes invalid JSON with --exec-output json, or more than a result may have', async ({
    commandLine: { file, run },
  }) => {
    const input = await file('one.txt', 'one\n');
    const json = ['--exec', 'cat', '--exec-output', 'json'];
    const noJson = await run('run', '--input', input, ...json, '--out', '-');
    expect(jsonLines<Line>(noJson.stdout)[0]?.error?.message).toContain('not JSON');
    const endless = await run('run', '--input', input, '--exec', 'yes', '--out', '-');
    expect(endless.code).toBe(1);
    expect(jsonLines<Line>(endless.stdout)[0]?.error?.message).toContain('more than');
  });

  test('is stopped with everything it started when its request is dropped', async ({
    commandLine: { file, run, start, folder },
  }) => {
    const input = await file('one.txt', 'one\n');
    const pids = join(folder, 'pids');
    const command = `echo $$ > ${pids}; sh -c 'echo $$ >> ${pids}; sleep 1000' | cat`;
    // Not told, it learns it with a renewal; but no moment of standing still ends the lease.
    start('worker', '--lease-ms', '10000', '--exec', command);
    expect((await run('submit', '--input', input, '--id', `${unique}-endless`)).code).toBe(0);
    const [shell = 0, inner = 0] = await until(async () => {
      if (!existsSync(pids)) return false;
      const found = (await readFile(pids, 'utf8')).trim().split('\n').map(Number);
      return found.length === 2 && found;
    }, STARTS);
    expect(runs(shell) && runs(inner)).toBe(true);
    expect((await run('drop', `${unique}-endless`)).code).toBe(0);
    await until(() => !runs(shell) && !runs(inner), { what: 'both have ended' });
  });
});

describe('a program that leaves something behind', () => {
  test('ends when its shell ends, and its process group is killed', async ({ commandLine }) => {
    const { file, folder, run } = commandLine;
    const input = await file('one.txt', 'one\n');
    const pids = join(folder, 'pids');
    const command = `sleep 1000 & echo $! > ${pids}; echo done`;
    const ended = await run('run', '--input', input, '--exec', command, '--out', '-');
    expect(jsonLines<Line>(ended.stdout)).toEqual([
      { index: 0, status: 'succeeded', value: 'done' },
    ]);
    const pid = Number(await readFile(pids, 'utf8'));
    await until(() => !runs(pid), { what: 'what it left behind has ended' });
  });

  test('delays neither its sub-request nor the worker, whatever process it left behind', async ({
    commandLine,
  }) => {
    const { file, folder, run } = commandLine;
    const input = await file('one.txt', 'one\ntwo\n');
    const pids = join(folder, 'pids');
    // In a session of its own, with our pipes in its hands.
    const command = `setsid sleep 1000 & echo $! >> ${pids}; read -r line; echo '{"value":1}'`;
    const each = ['run', '--input', input, '--out', '-', '--concurrency', '1', '--exec', command];
    try {
      for (const mode of [[], ['--persistent']]) {
        const ended = await run(...each, ...mode);
        expect(ended.code, ended.stderr).toBe(0);
      }
    } finally {
      for (const pid of (await readFile(pids, 'utf8')).trim().split('\n')) {
        process.kill(Number(pid), 'SIGKILL');
      }
    }
  });
});

describe('a persistent program', () => {
  // Answers each line in order; keeps a note of its own life in the folder.
  const program = (folder: string) => `
    const { appendFileSync } = require('node:fs');
    const { createInterface } = require('node:readline');
    const note = (text) => appendFileSync(${JSON.stringify(folder)} + '/' + process.pid, text + '\\n');
    note('start');
    createInterface({ input: process.stdin }).on('line', (line) => {
      const { index, payload } = JSON.parse(line);
      if (payload === 'die') { console.error('I die'); process.exit(9); }
      if (payload === 'bad') return console.log(JSON.stringify({ error: 'this one is bad' }));
      if (payload === 'type') return console.log(JSON.stringify({ error: { name: 'TypeError', message: 'odd' } }));
      if (payload === 'noise') console.log('what?');
      if (payload === 'twice') console.log(JSON.stringify({ index, value: 'early' }));
      note('work');
      console.log(JSON.stringify({ index, value: [index, payload] }));
    }).on('close', () => note('end'));`;

  test('gets one line for each sub-request and answers one, as many programs as slots', async ({
    commandLine: { file, folder, run },
  }) => {
    const script = await file('program.cjs', program(folder));
    const input = await file('numbers.ndjson', Array.from({ length: 500 }, (_, i) => i).join('\n'));
    const ended = await run(
      ...['run', '--input', input, '--split', 'ndjson', '--out', '-', '--concurrency', '3'],
      ...['--exec', `exec ${process.execPath} ${script}`, '--persistent'],
    );
    expect(ended.code, ended.stderr).toBe(0);
    const values = jsonLines<Line>(ended.stdout).map(({ value }) => value);
    expect(values).toEqual(Array.from({ length: 500 }, (_, i) => [i, i]));
    const lives = (await readdir(folder)).filter((name) => /^\d+$/.test(name));
    expect(lives.length).toBeGreaterThan(0);
    expect(lives.length).toBeLessThanOrEqual(3);
    // Standard input was closed, and each ended by itself.
    const notes = await Promise.all(lives.map((name) => readFile(join(folder, name), 'utf8')));
    expect(notes.every((text) => text.endsWith('end\n'))).toBe(true);
    expect(notes.join('').match(/work/g)).toHaveLength(500);
  });

  test('fails a sub-request by an error, by its end, and by a wrong answer', async ({
    commandLine: { file, folder, run },
  }) => {
    const script = await file('program.cjs', program(folder));
    const input = await file('words.txt', 'bad\ntype\ndie\nnoise\nfine\ntwice\nfine\nfine\n');
    const ended = await run(
      ...['run', '--input', input, '--out', '-', '--concurrency', '1'],
      ...['--exec', `exec ${process.execPath} ${script}`, '--persistent'],
    );
    expect(ended.code).toBe(1);
    const lines = jsonLines<Line>(ended.stdout);
    // However it goes, no sub-request gets the answer of another.
    const after = lines.slice(5).map(({ error, value }) => value ?? error?.name);
    expect(after).toEqual(['early', expect.anything(), expect.anything()]);
    for (const { index, value } of lines.slice(6)) {
      if (value !== undefined) expect(value).toEqual([index, 'fine']);
    }
    expect(lines.slice(0, 5).map(({ error, value }) => error ?? value)).toEqual([
      { name: 'Error', message: 'this one is bad', stack: 'Error: this one is bad' },
      { name: 'TypeError', message: 'odd', stack: 'TypeError: odd' },
      { name: 'ExitError', message: 'exit code 9: I die', stack: 'I die' },
      expect.objectContaining({ message: expect.stringContaining('neither') }),
      [4, 'fine'],
    ]);
  });

  test('may end with exit code 0 after each answer', async ({ commandLine: { file, run } }) => {
    const input = await file('some.txt', 'a\nb\nc\nd\ne\nf\n');
    const ended = await run(
      ...['run', '--input', input, '--out', '-', '--concurrency', '2'],
      ...['--exec', 'read -r line; echo \'{"value":"once"}\'', '--persistent'],
    );
    expect(ended.code, ended.stderr).toBe(0);
    expect(jsonLines<Line>(ended.stdout)).toEqual(
      Array.from({ length: 6 }, (_, index) => ({ index, status: 'succeeded', value: 'once' })),
    );
  });
});
