import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { jsonLines, saysIn, test } from '../support/command-line.js';
import { freshName, given, Hand } from '../support/given.js';
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
  commandLine: { queue, run },
}) => {
  const scene = await given.sealed({ queue, items: 9, limit: 2 });
  const hand = new Hand(scene);
  const running = await hand.hold(2);
  await hand.read(5);
  const { stdout } = await run('status', scene.id, '--running');
  const [, table = ''] = stdout.split('\n\n');
  const [head, ...rows] = table.trimEnd().split('\n');
  expect(head).toMatch(/^index +attempt +for/);
  expect(rows.map((row) => row.trim().split(/ +/)[0])).toEqual([
    ...running.map(({ index }) => String(index)),
    '5',
  ]);
  expect(rows.at(-1)).toBe('5 read ahead: waiting at a worker, not running');
  const all = jsonLines<{ readAhead: boolean }>(
    (await run('status', scene.id, '--running', '--json')).stdout,
  );
  expect(all.filter(({ readAhead }) => readAhead)).toHaveLength(5);
  expect(all).toHaveLength(7);
  await scene.request.drop();
  await scene.queue.finish(scene.id, scene.generation, 'dropped');
});
