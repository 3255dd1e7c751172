import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { jsonLines, saysIn, test } from '../support/command-line.js';
import { freshName } from '../support/given.js';
import { until } from '../support/until.js';

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('request');

const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));

test('status --running, workers, doctor and the log show what runs', async ({
  commandLine: { file, run, start },
}) => {
  const id = `${unique}-stuck`;
  const input = await file('stuck.txt', 'wait:600000\na\nwait:600000\nb\n');
  const flags = ['--handler', handler, '--slow-ms', '1', '--drain-ms', '60000'];
  const worker = start('worker', ...flags);
  await run('submit', '--input', input, '--id', id);
  await saysIn(worker, 'stderr', /"index":0,.*"msg":"handler runs far longer than usual"/);

  const listed = await until(async () => {
    const found = jsonLines<{ index: number; worker: string }>(
      (await run('status', id, '--running', '--json')).stdout,
    );
    return found.length === 2 && found;
  });
  expect(listed.map(({ index }) => index).sort()).toEqual([0, 2]);
  expect(listed[0]).toMatchObject({ attempt: 1, forMs: expect.any(Number) });
  const { stdout } = await run('status', id, '--running', '--limit', '1');
  expect(stdout).toMatch(/\n\nindex\s+attempt\s+for\s+progress\s+worker\n\s*[02]\s+1\s+\d/);
  expect(stdout).toContain('… and 1 more (--limit)');
  expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);

  const doctor = await run('doctor', '--slow-ms', '1');
  expect(doctor.code).toBe(0);
  expect(doctor.stdout).toContain(`${id}: 2 sub-requests running for more than 1 ms`);

  const works = /\n\S+\s+works\s+2 of 10\s+[\d.]+ m?s \S+:[02]\s/;
  await until(async () => works.test((await run('workers')).stdout));
  worker.kill('SIGTERM');
  await until(async () => /\sdrains\s/.test((await run('workers')).stdout));
  await run('drop', id);
  expect((await worker.finished).code).toBe(0);
});

test('status --running lists what runs, and counts what workers have read ahead', async ({
  commandLine: { file, run, start },
}) => {
  const id = `${unique}-ahead`;
  // Quick ones at first: only then does a worker read ahead.
  const items = `${'a\n'.repeat(60)}${'wait:600000\n'.repeat(100)}`;
  await run('submit', '--input', await file('ahead.txt', items), '--id', id);
  const worker = start('worker', '--handler', handler, '--concurrency', '2', '--drain-ms', '0');
  const shown = await until(
    async () => {
      const { stdout } = await run('status', id, '--running');
      return /\d read ahead/.test(stdout) && / succeeded +60\n/.test(stdout) && stdout;
    },
    { what: 'it has read ahead', timeoutMs: 45_000 },
  );
  const [, table = ''] = shown.split('\n\n');
  const [head, first, second, ahead] = table.trimEnd().split('\n');
  expect(head).toMatch(/^index +attempt +for/);
  for (const row of [first, second]) expect(row).toMatch(/^ *6[01] +1 /);
  const inFlight = Number(/ inFlight +(\d+)/.exec(shown)?.[1]);
  expect(ahead).toBe(`${inFlight - 2} read ahead: waiting at a worker, not running`);
  const listed = jsonLines<{ readAhead: boolean }>(
    (await run('status', id, '--running', '--json')).stdout,
  );
  expect(listed.filter(({ readAhead }) => !readAhead)).toHaveLength(2);
  expect(listed.length).toBeGreaterThan(2);
  await run('drop', id);
  worker.kill('SIGTERM');
  await worker.finished;
});
