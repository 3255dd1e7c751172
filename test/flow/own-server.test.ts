/**
 * What was started with a Redis of its own ends with it.
 * @module-tag processes
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { resolveRedisUrl, startRedis } from '@piecework/embedded';
import { Connection, processRuns } from '@piecework/protocol';
import { startTestKit } from '@piecework/testing';
import { Piecework } from 'piecework';
import { expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../../packages/embedded/dist/free-port.js';
import { STARTS, startCli } from '../support/cli.js';
import { listen } from '../support/listen.js';
import { descendants, endWithTest } from '../support/processes.js';
import { until } from '../support/until.js';

const CENSUS = fileURLToPath(new URL('../../examples/census/census.mjs', import.meta.url));

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-own-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Another program that listens at the port of a server that has ended. */
async function impostorAt(port: number) {
  const heard = { text: '', port };
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

test('the census ends with an error when its Redis is killed, and leaves no worker', async () => {
  const folder = await newFolder();
  for (let i = 0; i < 2_000; i += 1) await writeFile(join(folder, `${i}.txt`), `${i}`);
  const { REDIS_URL: _, ...env } = process.env;
  const demo = spawn(process.execPath, [CENSUS, folder], { stdio: 'pipe', env });
  endWithTest(demo);
  const { said, finished } = listen(demo);
  await until(() => said.stderr.includes('census of'), STARTS);
  const server = serverOf(demo.pid);
  const all = descendants(demo.pid);
  // A stopped process cannot end by itself.
  for (const { pid, args } of all) if (/worker/.test(args)) process.kill(pid, 'SIGSTOP');
  process.kill(server?.pid ?? 0, 'SIGKILL');
  const { code, stderr } = await finished;
  expect(code).toBe(1);
  expect(stderr).toContain("code: 'REDIS_ENDED'");
  await until(() => !all.some(({ pid }) => processRuns(pid)), { what: 'its processes have ended' });
});

test.skipIf(process.platform === 'win32')(
  'a process that got the number of an own server is not taken for it',
  async () => {
    // Process 1 belongs to root: another user may not signal it.
    const isRoot = process.getuid?.() === 0;
    const url = import.meta.resolve('@piecework/protocol');
    const impostor = await impostorAt(await freePort());
    const script = `
      import { Connection, processRuns } from '${url}';
      const connection = Connection.open('redis://default:secret@127.0.0.1:${impostor.port}?serverPid=1');
      const why = await connection.check().catch(({ message }) => message);
      console.log(JSON.stringify([processRuns(1), why]));
      process.exit();`;
    const child = spawn(process.execPath, ['--input-type=module', '-'], {
      stdio: 'pipe',
      cwd: '/',
      ...(isRoot ? { uid: 65_534, gid: 65_534 } : {}),
    });
    child.stdin.end(script);
    const { stdout, stderr } = await listen(child).finished;
    expect(JSON.parse(stdout || stderr)).toEqual([
      true,
      expect.stringContaining('the Redis that was started here has ended'),
    ]);
    expect(impostor.text).not.toContain('secret');
  },
);

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

/** Without `--id` the rest would be cancelled; with it, the rest stays queued, and nothing of it needs Redis any more. */
test.for<[string, string[], says: RegExp]>([
  [
    'without a name',
    ['--unavailable-ms', '1000', '--json'],
    /^\{"error":\{"code":"(CONNECTION|INDETERMINATE)".*$/m,
  ],
  [
    'with a name',
    ['--unavailable-ms', '86400000', '--id', 'job'],
    /^to continue, give the same command again: piecework run --id job …\npiecework: stopped, and how far .* Redis/m,
  ],
])(
  'a run %s ends after SIGTERM while Redis is away, and says why',
  { timeout: 180_000 },
  async ([, flags, says]) => {
    const folder = await newFolder();
    const input = join(folder, 'items.txt');
    const started = join(folder, 'started');
    await writeFile(input, 'a\nb\n');
    const redis = await startRedis();
    const exec = `touch ${started}; sleep 600 # {}`;
    const args = ['run', '--input', input, '--exec', exec, ...['--drain-ms', '0'], ...flags];
    const { child, said, finished } = startCli(args, { redis: redis.url });
    await until(() => existsSync(started), { what: 'a program runs', ...STARTS });
    const all = descendants(child.pid).map(({ pid }) => pid);
    await redis.kill('SIGKILL');
    await redis.ended;
    child.kill('SIGTERM');
    await until(() => said.stderr.includes('stopping:'), STARTS);
    const { code, stderr } = await finished;
    expect(code).toBe(1);
    expect(stderr).toMatch(says);
    await until(() => !all.some(processRuns), { what: 'its processes have ended' });
    await redis.close();
  },
);
