/**
 * Every example of README and docs compiles as it is printed, and those that can be run are run.
 * @module-tag own-server
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startOwnRedis } from '../support/redis.js';
import { examples, root } from './examples.js';

/** Why an example is compiled only, by a part of it. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'ctx.hold': 'ends a handler',
  'first.mjs': 'readme.test.ts runs it',
  startTestKit: 'takes over the clock of the process; testing-guide.test.ts runs it',
  WorkerFleet: 'starts processes with a handler of the user',
  'tls: {': 'needs certificates',
  'sentinels:': 'needs sentinels',
  BullWorker: 'shows BullMQ',
  FlowProducer: 'shows BullMQ',
  'queueEvents.on': 'shows BullMQ',
  'queue.getFailed': 'shows BullMQ',
  "defineTask<{ path: string }, string>('thumbnail')": 'works until the program ends',
  'jsonText: true, handler': 'works until the program ends',
  'events({ cursor: lastCursor })': 'has no end',
  'app.listen(': 'serves until the program ends',
  'worker.workers)': 'serves until the program ends',
  'graphite:': 'needs a Graphite server',
  'worker.subRequests': 'pulls until the program ends',
  'queue.items(': 'takes until the program ends',
  'queue.consume(': 'takes until the program ends',
  'takeDue(': 'waits a minute for what is due',
  'request.redrive(': 'redrives one request four times',
};

const run = promisify(execFile);
const all = examples();
const runnable = all.filter(
  ({ program }) => !Object.keys(NOT_RUN).some((part) => program.includes(part)),
);
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'piecework-examples-'));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  await mkdir(join(folder, 'src'));
  await cp(join(root, 'test/docs/given'), join(folder, 'src/given'), { recursive: true });
  for (const { file, program } of all) {
    // The address of the server is the only thing that is not as printed.
    const here = program.replaceAll(
      /(?<!\?\? )'redis:\/\/localhost(?::6379)?'/g,
      'String(process.env.REDIS_URL)',
    );
    await writeFile(join(folder, 'src', file), here);
  }
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  const compilerOptions = {
    ...{ target: 'es2022', module: 'nodenext', lib: ['es2023', 'esnext.disposable', 'dom'] },
    ...{
      types: ['node'],
      strict: true,
      allowJs: true,
      outDir: 'out',
      rootDir: 'src',
      skipLibCheck: true,
    },
  };
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['src'] }),
  );
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the examples of README and docs', () => {
  it('compile as they are printed', async () => {
    expect(all.length).toBeGreaterThan(40);
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const compiled = run(process.execPath, [tsc, '-p', folder], { cwd: folder });
    const { stdout } = await compiled.catch((error: { stdout: string }) => error);
    expect(stdout).toBe('');
  });

  it('run, where that takes no more than a Redis', async () => {
    expect(runnable.length).toBeGreaterThan(25);
    const server = await startOwnRedis();
    try {
      // From the last to the first, as guide/control.md begins with a cancel.
      const imports = runnable.toReversed().map(({ file, place }) => {
        const program = join(folder, 'out', file.replace(/ts$/, 'js'));
        return `console.log('${place}'); await import('${program}');`;
      });
      const given = join(folder, 'out/given/common.js');
      const end = `await (await import('${given}')).close(); process.exit();`;
      await writeFile(join(folder, 'main.mjs'), [...imports, end].join('\n'));
      const env = { ...process.env, REDIS_URL: server.url };
      const options = { cwd: folder, env, timeout: 90_000 };
      const { stdout, stderr, message } = await run(process.execPath, ['main.mjs'], options).then(
        (said) => ({ ...said, message: '' }),
        (error: Error & { stdout: string; stderr: string }) => error,
      );
      // The last place is that of the example that failed, or hung.
      expect({ stderr, message }, stdout.trim().split('\n').at(-1)).toEqual({
        stderr: '',
        message: '',
      });
    } finally {
      await server.close();
    }
  });
});
