import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { aptArchive } from '../../packages/embedded/dist/apt-archive.js';
import { cacheFolder } from '../../packages/embedded/dist/cache-folder.js';
import { osReleaseValue, thisMachine } from '../../packages/embedded/dist/machine.js';
import { findOnPath } from '../../packages/embedded/dist/run-command.js';

const run = promisify(execFile);
const model = fileURLToPath(new URL('piecework.pml', import.meta.url));
const MEMORY_MB = 4_000;

/** Absolute paths of SPIN and a C compiler, or a sentence that says what is missing. */
export async function findTools() {
  const { env } = process;
  const cc = (await findOnPath('cc', env)) ?? (await findOnPath('gcc', env));
  if (!cc) return 'no C compiler (cc) is installed';
  const spin = (await findOnPath('spin', env)) ?? (await fetchedSpin().catch(() => undefined));
  if (!spin) return 'SPIN is not installed (Debian and Ubuntu: the package spin)';
  return { spin, cc };
}

/** SPIN from the system's package archive, unpacked into the cache folder instead of installed. */
async function fetchedSpin() {
  const { env, osRelease } = thisMachine();
  for (const tool of ['apt-get', 'apt-cache', 'dpkg-deb']) {
    if (!(await findOnPath(tool, env))) return undefined;
  }
  const [id, version] = ['ID', 'VERSION_ID'].map((name) => osReleaseValue(osRelease, name));
  const home = join(await cacheFolder(env), `spin-${id}-${version || 'rolling'}-${process.arch}`);
  const program = join(home, 'usr', 'bin', 'spin');
  if (await runs(program)) return program;
  const working = await mkdtemp(`${home}.fetching-`);
  try {
    const root = join(working, 'root');
    await mkdir(root);
    for (const lists of ['system', 'own']) {
      const archive = await aptArchive(working, lists, env);
      if (lists === 'own') await archive.refresh();
      if ((await archive.unpack(['spin'], root)) === undefined) break;
    }
    // A faster process may have been here: what stands there then is as good.
    await rename(root, home).catch(() => {});
  } finally {
    await rm(working, { recursive: true, force: true });
  }
  return (await runs(program)) ? program : undefined;
}

const runs = (program) =>
  run(program, ['-V']).then(
    () => true,
    () => false,
  );

/**
 * Goes through all states of the model under these flags.
 * Without `variant` also looks for a cycle: every run has to end (see around.pml, End).
 */
export async function check({ spin, cc }, flags, { variant = false, large = false, signal } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-model-'));
  const options = { cwd: folder, signal, maxBuffer: 64 << 20 };
  try {
    await run(spin, ['-a', ...flags.map((flag) => `-D${flag}`), model], options);
    // The checker is one very large function: what is small is compiled in less time than optimised.
    const kind = [large ? '-O1' : '-O0', variant ? '-DSAFETY' : '-DNP'];
    const shape = ['-DCOLLAPSE', `-DMEMLIM=${MEMORY_MB}`, '-w', '-o', 'pan', 'pan.c'];
    await run(cc, [...kind, ...shape], options);
    // pan ends with 0 whatever it found; -E: how a run may end is said by the model.
    const { stdout } = await run(
      join(folder, 'pan'),
      ['-E', '-m5000000', ...(variant ? [] : ['-l'])],
      options,
    );
    const trail = (await readdir(folder)).some((name) => name.endsWith('.trail'));
    return { ...read(stdout), trail };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function read(text) {
  const number = (pattern) => Number(pattern.exec(text)?.[1] ?? Number.NaN);
  return {
    states: number(/(\d+) states, stored/),
    transitions: number(/([\d.e+]+) transitions/),
    depth: number(/depth reached (\d+)/),
    memoryMb: number(/([\d.]+)\s+total actual memory/),
    seconds: number(/elapsed time ([\d.e+]+) seconds/),
    errors: number(/errors: (\d+)/),
    /** Whether every state was looked at. */
    whole: !/max search depth too small|out of memory/.test(text),
    /** What did not hold, as the model says it. */
    violated: /pan:\d+: (.*?) \(at depth/.exec(text)?.[1] ?? '',
  };
}
