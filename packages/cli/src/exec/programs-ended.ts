import { readdir, readFile } from 'node:fs/promises';
import { pause } from '@piecework/protocol/contract';

/** Variable with the process id of the worker that started a program; `programsEnded` searches for it. */
export const WORKER_PID = 'PIECEWORK_WORKER_PID';

/** How often, and at which interval in ms, it is checked whether the programs of an ended worker have ended. */
const CHECKS = 10;
const CHECK_MS = 100;

/** Whether no program with this environment variable runs here any more; false where that cannot be known. */
export async function programsEnded(name: string, value: string): Promise<boolean> {
  for (let check = 0; check < CHECKS; check += 1) {
    const some = await someProgram(`\0${name}=${value}\0`).catch(() => true);
    if (!some) return true;
    await pause(CHECK_MS);
  }
  return false;
}

/** Whether a program runs whose environment contains `mark`. @throws Error where there is no /proc */
async function someProgram(mark: string): Promise<boolean> {
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    // Processes of other users, and those that have ended, cannot be read.
    const environment = await readFile(`/proc/${entry}/environ`, 'latin1').catch(() => '');
    if (`\0${environment}\0`.includes(mark)) return true;
  }
  return false;
}
