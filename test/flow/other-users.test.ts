/**
 * The servers that users start, as other users of the machine see them.
 * @module-tag processes
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  chown,
  lchown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { startRedis } from '@piecework/embedded';
import { Connection } from '@piecework/protocol';
import { startTestKit } from '@piecework/testing';
import { Redis } from 'ioredis';
import { nanoid } from 'nanoid';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Output } from '../../packages/cli/dist/output/output.js';
import { STARTS, startCli } from '../support/cli.js';
import { listen } from '../support/listen.js';
import { until } from '../support/until.js';

const SPY = fileURLToPath(new URL('../support/programs/other-user.mjs', import.meta.url));
const CENSUS = fileURLToPath(new URL('../../examples/census/census.mjs', import.meta.url));

/** Only root may become another user. Another user's view of files and processes needs that, and /proc. */
const isRoot = process.getuid?.() === 0 && process.platform === 'linux';
const whyNot = isRoot ? {} : { skipped: 'only root on Linux can look as another user' };
/** The user of the least rights on most systems. */
const NOBODY = 65_534;

let folder: string;
/** A payload that nobody but its owner may see. */
let payload: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'piecework-private-'));
  payload = `payload-${nanoid()}`;
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
});

interface Seen {
  /** The first line that each port answers to a command without a password. */
  readonly replies: Record<string, string>;
  /** Command lines, environments and files that contain a secret. */
  readonly leaks: readonly string[];
}

/** What another user finds out about `secrets` by looking everywhere; without root, what this user finds out. */
async function spyOn(ports: readonly number[], secrets: readonly string[]): Promise<Seen> {
  // From its standard input: another user may not enter this folder.
  const child = spawn(process.execPath, ['--input-type=module', '-'], {
    ...{ cwd: '/', stdio: ['pipe', 'pipe', 'inherit'] },
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
    env: { SPY: JSON.stringify({ ports, secrets, folder: tmpdir(), isOther: isRoot }) },
  });
  child.stdin.end(await readFile(SPY));
  const [said] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return JSON.parse(said) as Seen;
}

const portsOf = (url: string) => url.split(',').map((one) => Number(new URL(one).port));
const passwordsOf = (url: string) => url.split(',').map((one) => new URL(one).password);

/** Nothing but refusals, and no secret anywhere. */
async function expectClosed(url: string, ...more: string[]): Promise<void> {
  const secrets = [...new Set([...passwordsOf(url), ...more])];
  for (const secret of secrets) expect(secret.length).toBeGreaterThan(16);
  const { replies, leaks } = await spyOn(portsOf(url), secrets);
  const refused = portsOf(url).map((port) => [port, '-NOAUTH Authentication required.']);
  expect(replies).toEqual(Object.fromEntries(refused));
  expect(leaks).toEqual([]);
}

/** Modes that let others in, of a folder and all within. */
async function openModes(path: string): Promise<string[]> {
  const names = await readdir(path, { recursive: true });
  const modes = await Promise.all(
    names.map(async (name) => [name, (await stat(join(path, name))).mode & 0o777] as const),
  );
  return modes.flatMap(([name, mode]) => (mode & 0o077 ? [`${name} ${mode.toString(8)}`] : []));
}

/** The URL by which the worker processes of a command reach the server at this port. */
async function urlOfWorkers(port: number): Promise<string> {
  for (const pid of await readdir('/proc')) {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    const url = /(?:^|\0)REDIS_URL=([^\0]*)/.exec(environment)?.[1];
    if (url && new URL(url).port === String(port)) return url;
  }
  throw new Error(`no process has a URL of port ${port}`);
}

async function startDev(...flags: string[]) {
  const dev = startCli(['dev', '--json', ...flags]);
  onTestFinished(async () => {
    dev.child.kill('SIGTERM');
    await dev.finished;
  });
  const line = await until(() => /^\{.*\}$/m.exec(dev.said.stdout)?.[0], {
    timeoutMs: 90_000,
    what: 'dev has started',
  });
  return { dev, printed: JSON.parse(line) as Record<string, string> };
}

describe('another user of the machine finds no way', () => {
  test('into a server of `startRedis`: its files, data included, are private in an open folder', async () => {
    const dir = join(folder, 'data');
    await mkdir(dir, { mode: 0o755 });
    await chmod(dir, 0o755);
    await chmod(folder, 0o755);
    await using redis = await startRedis({ dir, persistence: 'aof' });
    const client = new Redis(redis.url);
    await client.set('key', payload);
    await client.save();
    client.disconnect();
    expect((await readdir(dir)).sort()).toEqual(['appendonlydir', 'dump.rdb', 'redis.log']);
    expect(await openModes(dir)).toEqual([]);
    await expectClosed(redis.url, payload);
  });

  test('into the test kit', async () => {
    await using kit = await startTestKit();
    await expectClosed(kit.redis);
  });

  test('into a dev server, whose URL stands on its standard output alone', async () => {
    const { dev, printed } = await startDev();
    const { url = '' } = printed;
    await expectClosed(url);
    expect(dev.said.stderr).not.toContain(new URL(url).password);
  });

  test('into the nodes of a dev cluster', async () => {
    const { printed } = await startDev('--cluster');
    const { url = '' } = printed;
    expect(portsOf(url)).toHaveLength(6);
    await expectClosed(url);
  });

  test('into the dashboard of a dev server', async () => {
    const { printed } = await startDev('--dashboard', '--dashboard-port', '0');
    const { url = '', dashboard = '', dashboardPassword = '' } = printed;
    for (const path of ['', 'api/events?queue=req&view=requests'])
      expect((await fetch(`${dashboard}${path}`)).status).toBe(401);
    await expectClosed(url, dashboardPassword);
  });

  test.skipIf(process.platform !== 'linux')(
    'into a run, its programs, or the failures that it leaves',
    async () => {
      const input = join(folder, 'input.txt');
      const gate = join(folder, 'gate');
      await writeFile(input, `${payload}\n`);
      const exec = `while [ ! -e ${gate} ]; do sleep 0.1; done; cat >&2; exit 1`;
      const run = startCli(['run', '--input', input, '--exec', exec]);
      onTestFinished(() => void run.child.kill('SIGKILL'));
      const found = await until(
        () => / answers at 127\.0\.0\.1:(\d+)$/m.exec(run.said.stderr),
        STARTS,
      );
      const url = await until(() => urlOfWorkers(Number(found[1])).catch(() => undefined), STARTS);
      const client = new Redis(url);
      await until(async () => (await client.keys('*run-*')).length > 0, {
        what: 'the request is in Redis',
        ...STARTS,
      });
      client.disconnect();
      await expectClosed(url, payload);
      await writeFile(gate, '');
      expect((await run.finished).code).toBe(1);
      const [, failures = ''] = /^all failures: (.*)$/m.exec(run.said.stderr) ?? [];
      onTestFinished(() => rm(failures));
      expect(await readFile(failures, 'utf8')).toContain(payload);
      expect((await spyOn([], [payload])).leaks).toEqual([]);
      expect(run.said.stderr).not.toContain(new URL(url).password);
    },
  );

  test.skipIf(process.platform !== 'linux')('into the demo and its dashboard', async () => {
    await writeFile(join(folder, payload), 'one file');
    const { REDIS_URL: _, ...env } = process.env;
    const demo = listen(
      spawn(process.execPath, [CENSUS, folder, '--dashboard'], {
        ...{ env, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] },
      }),
    );
    onTestFinished(async () => {
      demo.child.kill('SIGINT');
      await demo.finished;
    });
    const find = (pattern: RegExp) => until(() => pattern.exec(demo.said.stderr), STARTS);
    const [, port] = await find(/ answers at 127\.0\.0\.1:(\d+)$/m);
    const url = await until(() => urlOfWorkers(Number(port)).catch(() => undefined), STARTS);
    const [, page = '', password = ''] = await find(
      /dashboard: (\S+) \(any name, password (\S+)\)/,
    );
    await find(/still shows it/);
    expect((await fetch(page)).status).toBe(401);
    await expectClosed(url, password, payload);
  });
});

test.skipIf(!isRoot)(
  'the spy sees what is open, so that it would notice',
  { meta: whyNot },
  async () => {
    await using redis = await startRedis({ password: '' });
    const file = join(tmpdir(), `piecework-open-${nanoid()}`);
    await writeFile(file, payload, { mode: 0o644 });
    onTestFinished(() => rm(file));
    const talker = spawn('/bin/sh', ['-c', 'read _', payload], { stdio: 'pipe' });
    onTestFinished(() => void talker.kill());
    const { replies, leaks } = await spyOn([redis.port], [payload]);
    expect(replies[redis.port]).toMatch(/^\*/);
    expect([...leaks].sort()).toEqual([`/proc/${talker.pid}/cmdline`, file]);
  },
);

describe('a folder for the data', () => {
  test('is refused when others may write into it, before anything is written there', async () => {
    const dir = join(folder, 'data');
    await mkdir(dir);
    await chmod(dir, 0o777);
    await expect(startRedis({ dir })).rejects.toMatchObject({
      code: 'REDIS_NOT_STARTED',
      message: `${dir} cannot hold the data: others may write into it; chmod go-w '${dir}'`,
    });
    expect(await readdir(dir)).toEqual([]);
  });

  test('is refused when others could replace it or a folder above it, and nothing is made', async () => {
    const open = join(folder, 'open');
    await mkdir(join(open, 'within'), { recursive: true });
    await symlink(join(open, 'within'), join(folder, 'link'));
    await chmod(open, 0o777);
    const paths = ['open/data', 'open/within/data', 'link/data', 'link'];
    for (const path of paths.map((one) => join(folder, one)))
      await expect(startRedis({ dir: path }), path).rejects.toMatchObject({
        code: 'REDIS_NOT_STARTED',
        message: `${path} cannot hold the data: others may write into ${open}, and could replace it; chmod go-w '${open}', or choose another folder`,
      });
    expect(await readdir(open, { recursive: true })).toEqual(['within']);
    // Nobody renames what is of others in a sticky one.
    await chmod(open, 0o1777);
    await using redis = await startRedis({ dir: join(folder, 'link/data') });
    expect(await readdir(open, { recursive: true })).toContain('within/data/redis.log');
    expect(redis.dir).toBe(join(folder, 'link/data'));
  });

  test.skipIf(!isRoot)(
    'is refused when a link on the way, or a folder above it, is of another user',
    { meta: whyNot },
    async () => {
      const [theirs, link] = [join(folder, 'theirs'), join(folder, 'link')];
      await mkdir(theirs);
      await chown(theirs, NOBODY, NOBODY);
      await symlink(folder, link);
      await lchown(link, NOBODY, NOBODY);
      for (const [dir, why] of [
        [join(theirs, 'data'), `${theirs} belongs to another user, who could replace it`],
        [join(link, 'data'), `${link} is a link of another user`],
      ] as const)
        await expect(startRedis({ dir })).rejects.toThrow(`${dir} cannot hold the data: ${why}`);
      expect((await readdir(folder)).sort()).toEqual(['link', 'theirs']);
      expect(await readdir(theirs)).toEqual([]);
    },
  );
});

describe.skipIf(!isRoot)(
  'a file that a command writes in a folder like /tmp',
  { meta: whyNot },
  () => {
    let shared: string;
    beforeEach(async () => {
      shared = join(folder, 'shared');
      await mkdir(shared);
      await chmod(shared, 0o1777);
      // The folder is of a third user.
      await chown(shared, NOBODY - 1, NOBODY - 1);
      await writeFile(join(folder, 'target'), 'as it was');
    });

    test.for(['--out', '--bad-rows', '--joblog'])(
      'is none of another user, and no link of his: %s',
      async (flag) => {
        await writeFile(join(shared, 'file'), 'as it was');
        await symlink(join(folder, 'target'), join(shared, 'link'));
        await symlink(join(folder, 'new'), join(shared, 'dangling'));
        for (const name of ['file', 'link', 'dangling'])
          await lchown(join(shared, name), NOBODY, NOBODY);
        const input = join(folder, 'in.txt');
        await writeFile(input, 'a\n');
        const why = 'it belongs to another user, in a folder that all may write into';
        for (const name of ['file', 'link', 'dangling']) {
          const args = ['run', '--input', input, '--exec', 'cat', flag, join(shared, name)];
          const { code, stderr } = await startCli(args).finished;
          expect([code, stderr]).toEqual([2, expect.stringContaining(why)]);
        }
        expect(await readFile(join(folder, 'target'), 'utf8')).toBe('as it was');
        expect(await readFile(join(shared, 'file'), 'utf8')).toBe('as it was');
        expect(await readdir(folder)).not.toContain('new');
      },
    );

    test('may be a link or a file of this user or of the owner of the folder', async () => {
      await symlink(join(folder, 'target'), join(shared, 'mine'));
      await symlink(join(folder, 'target'), join(shared, 'of-owner'));
      await lchown(join(shared, 'of-owner'), NOBODY - 1, NOBODY - 1);
      await writeFile(join(shared, 'file'), '');
      for (const name of ['mine', 'of-owner', 'file', 'new']) {
        const output = await Output.open('--out', join(shared, name));
        await output.line(name);
        await output.close();
        expect(await readFile(join(shared, name), 'utf8')).toBe(`${name}\n`);
      }
    });
  },
);

test('a connection without or with a wrong password learns that dev prints the URL', async () => {
  await using redis = await startRedis();
  for (const userInfo of ['', ':wrong@']) {
    const connection = Connection.open(`redis://${userInfo}127.0.0.1:${redis.port}`);
    await expect(connection.check()).rejects.toThrow(/piecework dev prints/);
    await connection.close();
  }
});

test.skipIf(!isRoot)(
  'a folder that may not be searched is named, and what is in it is not called missing',
  { meta: whyNot },
  async () => {
    await writeFile(join(folder, 'in'), '1\n');
    await chmod(folder, 0o700);
    const program = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));
    const said = async (...flags: string[]) => {
      const child = spawn(process.execPath, [program, 'run', '--dry-run', ...flags], {
        uid: NOBODY,
        gid: NOBODY,
        cwd: '/',
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      const [stderr] = await Promise.all([text(child.stderr), once(child, 'close')]);
      return [child.exitCode, stderr];
    };
    const denied = [2, expect.stringContaining(`that may be read (permission denied: ${folder}`)];
    for (const input of ['in', '*'])
      expect(await said('--exec', 'cat', '--input', join(folder, input))).toEqual(denied);
    expect(await said('--input', program, '--handler', join(folder, 'in'))).toEqual(denied);
  },
);
