/**
 * `piecework dev --dashboard`, as somebody starts it to look.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import type { RequestsView, WorkersView } from '../../packages/views/dist/shape/views.js';
import { cli, STARTS, startCli } from '../support/cli.js';
import { until } from '../support/until.js';

/** What `dev --dashboard --json` prints. */
interface Page {
  readonly url: string;
  readonly dashboard: string;
  readonly dashboardPassword: string;
}

/** The first value of a view of the page. */
async function viewOf<T>(page: Page, view: string): Promise<T> {
  const ending = new AbortController();
  const url = `${page.dashboard}api/events?${new URLSearchParams({ queue: 'req', view })}`;
  const authorization = `Basic ${btoa(`me:${page.dashboardPassword}`)}`;
  const { body } = await fetch(url, { headers: { authorization }, signal: ending.signal });
  let text = '';
  try {
    for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part;
      const [, found] = /event: view\ndata: (.*)\n\n/.exec(text) ?? [];
      if (found !== undefined) return JSON.parse(found) as T;
    }
  } finally {
    ending.abort();
  }
  throw new Error('the stream has ended');
}

async function expectNoRedis(url: string): Promise<void> {
  const gone = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  gone.on('error', () => {});
  await expect(gone.connect()).rejects.toThrow();
}

test('dev --dashboard shows a fleet that works on requests of each kind, until it is stopped', {
  tags: 'processes',
}, async () => {
  const dev = startCli(['dev', '--dashboard', '--dashboard-port', '0', '--json']);
  onTestFinished(() => void dev.child.kill('SIGKILL'));
  const line = await until(() => /^\{.*\}$/m.exec(dev.said.stdout)?.[0], STARTS);
  const page = JSON.parse(line) as Page;
  const { url, dashboard } = page;
  const rows = await until(
    async () => {
      const { rows } = await viewOf<RequestsView>(page, 'requests');
      return rows.filter(({ counts }) => counts.succeeded > 0).length >= 3 && rows;
    },
    { what: 'requests of each kind are worked on', ...STARTS },
  );
  expect(rows.map(({ id }) => id).sort()).toEqual([
    'backup-1',
    'mail-1',
    'report-1',
    'thumbnail-1',
  ]);
  const { workers } = await viewOf<WorkersView>(page, 'workers');
  expect(workers).toHaveLength(2);
  // What people do with its requests ends nothing.
  expect((await cli(['drop', 'mail-1'], { redis: url })).code).toBe(0);
  await until(
    async () => {
      const { rows } = await viewOf<RequestsView>(page, 'requests');
      return rows.some(({ id }) => id === 'mail-2');
    },
    { what: 'the next one follows', ...STARTS },
  );
  dev.child.kill('SIGINT');
  expect(await dev.finished).toMatchObject({ code: 0 });
  for (const { pid } of workers) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  await expect(fetch(dashboard)).rejects.toThrow();
  await expectNoRedis(url);
});

test('dev --dashboard says that its port is taken, and leaves nothing behind', {
  tags: 'processes',
}, async () => {
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { code, stdout, stderr } = await cli(['dev', '--dashboard', '--dashboard-port', `${port}`]);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain(
    `piecework: --dashboard-port ${port}: another process listens there; choose another port, or 0 for a free one`,
  );
  const [, address] = /answers at (\S+)/.exec(stderr) ?? [];
  await expectNoRedis(`redis://${address}`);
});
