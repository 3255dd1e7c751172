/**
 * What was started with a Redis of its own ends with it.
 * @module-tag processes
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { resolveRedisUrl, startRedis } from '@piecework/embedded';
import { Connection, processRuns } from '@piecework/protocol';
import { startTestKit } from '@piecework/testing';
import { Piecework } from 'piecework';
import { expect, onTestFinished, test, vi } from 'vitest';
import { STARTS, startCli } from '../support/cli.js';
import { until } from '../support/until.js';

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-own-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Process ids of the descendants of a process, each with its command line. */
function descendants(pid: number | undefined): { pid: number; args: string }[] {
  const all = execFileSync('ps', ['-Ao', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [])
    .map(([, own, parent, args = '']) => ({ pid: Number(own), parent: Number(parent), args }));
  const below = (parent: number | undefined): typeof all =>
    all.filter((one) => one.parent === parent).flatMap((one) => [one, ...below(one.pid)]);
  return below(pid);
}

/** Another program that listens at the port of a server that has ended. */
async function impostorAt(port: number) {
  const heard = { text: '' };
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    socket.on('data', (data) => {
      heard.text += data.toString('latin1');
    });
  });
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  });
  const listens = () =>
    new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
  await until(listens, { what: 'the port is free' });
  return heard;
}

/** The Redis that a command has started. */
function serverOf(pid: number | undefined): { pid: number; port: number } | undefined {
  const found = descendants(pid).find(({ args }) => /^\S*(redis|valkey)-server .*:\d+/.test(args));
  return found && { pid: found.pid, port: Number(/:(\d+)/.exec(found.args)?.[1]) };
}

test('a run ends with an error when its Redis is killed, and leaves no worker or program', async () => {
  const folder = await newFolder();
  const input = join(folder, 'items.txt');
  const started = join(folder, 'started');
  await writeFile(input, 'a\nb\n');
  const exec = `echo $$ >> ${started}; sleep 600 # {}`;
  const args = ['run', '--input', input, '--exec', exec, '-j', '2', '--json'];
  const { child, finished } = startCli(args);
  const pids = async () =>
    existsSync(started) ? (await readFile(started, 'utf8')).trim().split('\n').map(Number) : [];
  await until(async () => (await pids()).length === 2, { what: 'both programs run', ...STARTS });
  const server = serverOf(child.pid);
  const all = descendants(child.pid).map(({ pid }) => pid);
  expect(all).toEqual(expect.arrayContaining([server?.pid, ...(await pids())]));
  process.kill(server?.pid ?? 0, 'SIGKILL');
  const impostor = await impostorAt(server?.port ?? 0);
  const { code, stderr } = await finished;
  expect(code).toBe(1);
  const { error } = JSON.parse(stderr.trim().split('\n').at(-1) ?? '');
  expect(error.code).toBe('REDIS_ENDED');
  expect(error.message).toMatch(
    /^the run ended early, as its Redis did(.|\n)*by itself:\n\s*ended by SIGKILL\n/,
  );
  await until(() => !all.some(processRuns), { what: 'its processes have ended' });
  expect(impostor.text).toBe('');
});

test('dev ends with an error when its Redis is killed, and its example too', async () => {
  const { child, said, finished } = startCli(['dev', '--dashboard', '--dashboard-port', '0']);
  await until(() => said.stderr.includes('Ctrl-C ends all'), STARTS);
  const server = serverOf(child.pid);
  const all = descendants(child.pid).map(({ pid }) => pid);
  process.kill(server?.pid ?? 0, 'SIGKILL');
  const impostor = await impostorAt(server?.port ?? 0);
  const { code, stderr } = await finished;
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/has ended by itself:\n\s*ended by SIGKILL\n/),
  ]);
  await until(() => !all.some(processRuns), { what: 'its processes have ended' });
  expect(impostor.text).toBe('');
});

test('no client gives its password to another program at the port of an own server that has ended', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.close());
  const connection = Connection.open(redis.ownUrl);
  const twin = await connection.openFor('any', {});
  await Promise.all([connection.client.ping(), twin.client.ping()]);
  // A connection that is lost is opened again, as long as the server runs.
  connection.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'no').catch(() => {});
  await until(async () => (await connection.client.ping()) === 'PONG');
  await redis.kill('SIGKILL');
  const impostor = await impostorAt(redis.port);
  await until(() => connection.client.status === 'end' && twin.client.status === 'end');
  const late = Connection.open(redis.ownUrl);
  await expect(late.check()).rejects.toMatchObject({ code: 'CONNECTION' });
  // A look whether TLS is spoken there is all that comes.
  expect(impostor.text).not.toMatch(/auth|hello|ping|info/i);
  expect(impostor.text).not.toContain(redis.password);
  await Promise.all([connection, late].map((one) => one.closeSoon()));
});

test('a test kit whose Redis is killed says so where it waits for a request', async () => {
  await using kit = await startTestKit();
  const pw = new Piecework({ redis: kit.redis, queue: kit.queue() });
  const request = await pw.submit(['a']);
  const draining = kit.drain(request);
  draining.catch(() => {});
  const pid = Number(new URL(kit.redis).searchParams.get('serverPid'));
  process.kill(pid, 'SIGKILL');
  await expect(draining).rejects.toMatchObject({ code: 'REDIS_ENDED' });
  await pw.close();
});

test('the Redis that a program resolved is lost when it ends, and not when it is closed', async () => {
  vi.stubEnv('REDIS_URL', '');
  onTestFinished(() => void vi.unstubAllEnvs());
  const resolved = await resolveRedisUrl();
  const lost = expect(resolved.lost).rejects.toMatchObject({ code: 'REDIS_ENDED' });
  process.kill(Number(new URL(resolved.url).searchParams.get('serverPid')), 'SIGKILL');
  await lost;
  // Closed by its program, it is not lost.
  const closed = await resolveRedisUrl();
  await closed.close();
  expect(await Promise.race([closed.lost, 'not lost'])).toBe('not lost');
});

/** Without `--id` the rest would be cancelled; with it, the rest stays queued. */
test.for<[string, string[]]>([
  ['without a name', []],
  ['with a name', ['--id', 'job']],
])(
  'a run %s ends after SIGTERM while Redis is away, and says why',
  { timeout: 180_000 },
  async ([, named]) => {
    const folder = await newFolder();
    const input = join(folder, 'items.txt');
    const started = join(folder, 'started');
    await writeFile(input, 'a\nb\n');
    const redis = await startRedis();
    const exec = `touch ${started}; sleep 600 # {}`;
    const args = [
      'run',
      '--input',
      input,
      '--exec',
      exec,
      ...['--drain-ms', '0', '--unavailable-ms', '1000', '--json'],
      ...named,
    ];
    const { child, said, finished } = startCli(args, { redis: redis.url });
    await until(() => existsSync(started), { what: 'a program runs', ...STARTS });
    const all = descendants(child.pid).map(({ pid }) => pid);
    await redis.kill('SIGKILL');
    await redis.ended;
    child.kill('SIGTERM');
    await until(() => said.stderr.includes('stopping:'), STARTS);
    const { code, stderr } = await finished;
    expect(code).toBe(1);
    expect(JSON.parse(stderr.trim().split('\n').at(-1) ?? '').error.code).toMatch(
      /^(CONNECTION|INDETERMINATE)$/,
    );
    await until(() => !all.some(processRuns), { what: 'its processes have ended' });
    await redis.close();
  },
);
