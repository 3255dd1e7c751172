import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { arch, cpus, loadavg, release, totalmem, type } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { parseInfo } from './redis-figures.js';

export const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');
const PEERS = ['bullmq', 'bee-queue', 'ioredis'];

/** Everything except the code that the figures depend on. */
export interface Surroundings {
  readonly date: string;
  readonly revision: string;
  readonly machine: string;
  /** Load average before the first run: other work on the machine. */
  readonly load: string;
  readonly versions: string;
  readonly persistence: string;
}

export async function surroundings(probe: Redis): Promise<Surroundings> {
  const info = parseInfo(await probe.info('server'));
  const packages = PEERS.map((name) => `${name} ${installedVersion(name)}`);
  const [, append] = (await probe.config('GET', 'appendonly')) as [string, string];
  const [, sync] = (await probe.config('GET', 'appendfsync')) as [string, string];
  const [first] = cpus();
  const gigabytes = (totalmem() / 2 ** 30).toFixed(1);
  return {
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
    revision: revisionOf(REPOSITORY),
    machine: `${cpus().length} × ${first?.model.trim() ?? 'unknown CPU'}, ${gigabytes} GiB, ${type()} ${release()} ${arch()}`,
    load: loadavg()
      .map((value) => value.toFixed(2))
      .join(' '),
    versions: `Redis ${info['redis_version']} · Node ${process.versions.node} · ${packages.join(' · ')}`,
    persistence: append === 'yes' ? `append-only file, fsync ${sync}` : 'none',
  };
}

/** Short hash of the checkout, with a plus when it has changes. */
export function revisionOf(checkout: string): string {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', checkout, ...args], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim();
    const changed = git('status', '--porcelain', '--', 'packages', 'lua') !== '';
    return `${git('rev-parse', '--short', 'HEAD')}${changed ? ' + changes' : ''}`;
  } catch {
    return 'not a git checkout';
  }
}

function installedVersion(name: string): string {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
