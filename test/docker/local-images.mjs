// Makes images of this machine's own programs, where no image registry can be reached: a base like node:22-slim, of
// this machine's Node, shell and users, and a Redis. For tests only: they are not updated as official images are.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export const LOCAL_NODE = 'piecework-test/node:local';
export const LOCAL_REDIS = 'piecework-test/redis:local';

function run(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status === 0) return stdout.trim();
  throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}

/** The path of a program, with symbolic links resolved. */
const programOf = (name) => realpathSync(run('/bin/sh', ['-c', `command -v ${name}`]));

/** The shared libraries that a program needs. */
const librariesOf = (path) =>
  [...run('ldd', [path]).matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, library]) => library);

/** Imports an image with these programs, as `{ '/usr/bin/node': 'node' }`, and files. */
function importImage(tag, programs, files, changes) {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-base-'));
  const copy = (from, to) => {
    mkdirSync(join(folder, dirname(to)), { recursive: true });
    cpSync(from, join(folder, to), { dereference: true });
  };
  try {
    for (const [to, name] of Object.entries(programs)) {
      const path = programOf(name);
      copy(path, to);
      for (const library of librariesOf(path)) copy(realpathSync(library), library);
    }
    for (const [to, content] of Object.entries(files)) {
      mkdirSync(join(folder, dirname(to)), { recursive: true });
      writeFileSync(join(folder, to), content, { mode: to.endsWith('.sh') ? 0o755 : 0o644 });
    }
    for (const name of ['tmp', 'data', 'home/node'])
      mkdirSync(join(folder, name), { recursive: true });
    // The folder becomes the root of the image, and a new temporary folder is closed to others.
    chmodSync(folder, 0o755);
    const tarball = join(folder, '..', `${tag.replaceAll(/\W/g, '-')}.tar`);
    run('tar', [
      '--create',
      '--owner=0',
      '--group=0',
      '--file',
      tarball,
      '--directory',
      folder,
      '.',
    ]);
    const applied = changes.flatMap((change) => ['--change', change]);
    run('docker', ['import', ...applied, tarball, tag]);
    rmSync(tarball);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function makeLocalImages() {
  const users = {
    'etc/passwd': 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n',
    'etc/group': 'root:x:0:\nnode:x:1000:\n',
    'etc/nsswitch.conf': 'hosts: files dns\n',
  };
  const path = 'ENV PATH=/usr/local/bin:/usr/bin:/bin';
  importImage(LOCAL_NODE, { 'usr/bin/node': 'node', 'bin/sh': 'dash', 'bin/cat': 'cat' }, users, [
    path,
  ]);
  const redis = {
    'usr/bin/redis-server': 'redis-server',
    'usr/bin/redis-cli': 'redis-cli',
    'bin/sh': 'dash',
  };
  const entrypoint = { 'usr/local/bin/docker-entrypoint.sh': '#!/bin/sh\nexec "$@"\n' };
  importImage(LOCAL_REDIS, redis, { ...users, ...entrypoint }, [
    path,
    'WORKDIR /data',
    'EXPOSE 6379',
    // Arguments after the program, to which the embedded server adds its settings.
    'CMD ["redis-server", "--protected-mode", "no"]',
  ]);
}
