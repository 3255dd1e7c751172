import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/*
 * Programs as users write them, compiled with their settings: what has to compile, and what must not,
 * on the line behind each @ts-expect-error. A line that compiles all the same is an error, too.
 */
test('programs of users compile, and what is wrong is blamed where it stands', async () => {
  const tsc = `${root}node_modules/typescript/bin/tsc`;
  const compiled = promisify(execFile)(process.execPath, [tsc, '-p', 'test/types'], { cwd: root });
  const { stdout } = await compiled.catch((error: { stdout: string }) => error);
  expect(stdout).toBe('');
});

/* With the settings of TypeScript 6 and newer, which load no types of Node for a program that does not ask for them. */
test.each(['health', 'items'])('an entry that needs types of Node loads them: %s', async (name) => {
  const options = [
    '--ignoreConfig',
    '--strict',
    '--noEmit',
    '--target',
    'es2022',
    '--module',
    'nodenext',
  ];
  const args = [`${root}node_modules/typescript/bin/tsc`, ...options, `${name}.ts`];
  const compiled = promisify(execFile)(process.execPath, args, { cwd: `${root}test/types/alone` });
  const { stdout } = await compiled.catch((error: { stdout: string }) => error);
  expect(stdout).toBe('');
});
