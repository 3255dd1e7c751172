import { readFileSync } from 'node:fs';

/**
 * Whether a process of this machine is running.
 * @param isOurs whether this user started it: a process that we may not signal is then another one, which got its number
 */
export function processRuns(pid: number, isOurs = false): boolean {
  // Our own id: the other process has ended and we got its number, as in a container that was started again.
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return !isOurs && (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
  try {
    // A process that has ended keeps its number until its parent has waited for it.
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}
