/**
 * The short form of `npm run chaos -- --all`: lost writes, wrong clocks, outages, shards, the other queues.
 * @module-tag processes
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { AttackedServer, type LostWrites } from '../../tools/chaos/src/attacked/server.js';
import { listen } from '../support/listen.js';

const PROGRAM = fileURLToPath(new URL('../../tools/chaos/dist/main.js', import.meta.url));

const start = (...args: string[]) =>
  listen(
    spawn(process.execPath, [PROGRAM, 'chaos', ...args], { stdio: ['ignore', 'pipe', 'pipe'] }),
  );

test('a server that loses writes, with a wrong clock, loses nothing that it acknowledged since', {
  timeout: 480_000,
}, async ({ onTestFinished }) => {
  const { child, finished } = start('--all', '--minutes', '0.4', '--seed', '1', '--rate', '300');
  onTestFinished(() => void child.kill('SIGTERM'));
  const { code, stdout, stderr } = await finished;
  expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
  expect(stdout).toContain('Clean.');
  // Without faults, or with nothing in doubt, the zeros would mean nothing.
  for (const fault of ['promote replica', 'restore snapshot', 'freeze redis', 'stop redis'])
    expect(stdout).toMatch(new RegExp(`│ ${fault} +│ +[1-9]`));
  if (!stderr.includes('left out: steps of the clock'))
    expect(stdout).toMatch(/│ steps of the clock +│ +[1-9]/);
  for (const queue of ['delayed', 'ids', 'retry', 'scheduler'])
    expect(stdout).toMatch(new RegExp(`│ keys put: ${queue} +│ +[1-9]`));
});

test.each<[name: string, lose: (server: AttackedServer, onLost: OnLost) => Promise<void>]>([
  ['a replica', (it, onLost) => it.promote({ lagMs: 30, awayMs: 0, offsetMs: 0, onLost })],
  ['a snapshot', (it, onLost) => it.restoreSnapshot({ ageMs: 200, awayMs: 0, onLost })],
])(
  '%s lacks what was written last and nothing that was acknowledged before',
  {
    timeout: 60_000,
  },
  async (_name, lose) => {
    const folder = mkdtempSync(join(tmpdir(), 'piecework-chaos-test-'));
    const server = await AttackedServer.start(folder, 'always');
    try {
      const acknowledged: bigint[] = [];
      let writes = true;
      const writing = (async () => {
        while (writes) {
          const key = acknowledged.length;
          // While it is away nothing is acknowledged.
          const done = await server.client.set(`key-${key}`, 1).catch(() => sleep(1));
          if (done) acknowledged.push(process.hrtime.bigint());
        }
      })();
      let lost: LostWrites | undefined;
      await lose(server, (told) => {
        lost = told;
      });
      writes = false;
      await writing;
      const there = await Promise.all(
        acknowledged.map((_, key) => server.client.exists(`key-${key}`)),
      );
      const missing = acknowledged.filter((_, key) => there[key] === 0);
      expect(missing.length).toBeGreaterThan(0);
      // Of a write that was acknowledged at the very end the reply may have come a little later.
      expect(missing.filter((ns) => lost && ns < lost.sureNs)).toEqual([]);
    } finally {
      await server[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

type OnLost = (lost: LostWrites) => void;

test('a cluster has faults of its own', async () => {
  const { code, stderr } = await start('--cluster', '--clocks').finished;
  expect(code).toBe(2);
  expect(stderr).toContain('--cluster');
});
