import { readFileSync } from 'node:fs';

/** Whether a process of this machine is running. */
export const processRuns = (pid: number): boolean => isRunning(pid, ['ESRCH']);

/**
 * Whether a process that this user has started is running. A process that we may not signal is another one, which got
 * its number.
 */
export const ownProcessRuns = (pid: number): boolean => isRunning(pid, ['ESRCH', 'EPERM']);

/** @param ended codes of a signal that say that the process has ended */
function isRunning(pid: number, ended: readonly string[]): boolean {
  // Our own id: the other process has ended and we got its number, as in a container that was started again.
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return !ended.includes((error as NodeJS.ErrnoException).code ?? '');
  }
  try {
    // A process that has ended keeps its number until its parent has waited for it.
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}
