import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const program = fileURLToPath(new URL('../../scripts/docker-up.mjs', import.meta.url));
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'piecework-docker-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** How `npm run docker:up` ends where `docker` is this shell script. */
async function endWith(docker: string | undefined) {
  const file = join(folder, 'docker');
  await rm(file, { force: true });
  if (docker !== undefined) {
    await writeFile(file, `#!/bin/sh\n${docker}\n`);
    await chmod(file, 0o755);
  }
  const env = { ...process.env, PATH: folder };
  return new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [program], { env }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

const NOBODY = 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.';

test.each([
  ['there is no Docker', undefined, 'there is no docker on PATH\nInstall Docker.'],
  ['no engine runs', `echo "${NOBODY}" >&2; exit 1`, `${NOBODY}\nStart the engine`],
  [
    'no engine of Docker 20 runs',
    `echo "ERROR: ${NOBODY}"; echo 'errors pretty printing info' >&2; exit 1`,
    `${NOBODY}\nStart the engine`,
  ],
  [
    'this user may not use the engine',
    "echo 'permission denied while trying to connect' >&2; exit 1",
    'permission denied while trying to connect\nRun it as root',
  ],
  ['there is no Docker Compose', 'test "$1" = info', 'Docker Compose is not\nInstall the plugin'],
])('docker:up starts nothing and says what to do when %s', async (_, docker, said) => {
  const { code, stdout, stderr } = await endWith(docker);
  expect(stderr).toMatch(/^nothing was started: /);
  expect(stderr).toContain(said);
  expect(stderr).toMatch(/Then give the command again\.\n$/);
  // Before anything is installed, built or packed.
  expect([code, stdout]).toEqual([1, '']);
});
