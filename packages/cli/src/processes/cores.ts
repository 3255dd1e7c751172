import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The limit of this container's CPU time, as in `200000 100000`: two cores; `max` instead of the first: none. */
const CGROUP_LIMIT = '/sys/fs/cgroup/cpu.max';

/**
 * How many cores the processes of this machine, or of this container, may use. Node's own number leaves out the limit of
 * a container in versions before 22.
 */
export function cores(): number {
  const all = availableParallelism();
  try {
    return coresOf(readFileSync(CGROUP_LIMIT, 'utf8'), all);
  } catch {
    return all;
  }
}

/** @param limit what the file of the limit contains */
export function coresOf(limit: string, all: number): number {
  const [quota, period] = limit.trim().split(' ').map(Number);
  if (!quota || !period) return all;
  return Math.max(1, Math.min(all, Math.ceil(quota / period)));
}

/** How many processes `--processes` means: `auto` is one for each core. */
export const processCount = (processes: number | 'auto'): number =>
  processes === 'auto' ? cores() : processes;
