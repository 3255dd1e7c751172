import { readdir, readFile } from 'node:fs/promises';
import { pause } from '@piecework/protocol';

/** How often, and at which distance in ms, it is looked whether programs of an ended worker have ended too. */
const LOOKS = 10;
const LOOK_MS = 100;

/** Whether no program runs here any more that has this in its environment; false where that cannot be known. */
export async function programsEnded(name: string, value: string): Promise<boolean> {
  for (let look = 0; look < LOOKS; look += 1) {
    const some = await someProgram(`\0${name}=${value}\0`).catch(() => true);
    if (!some) return true;
    await pause(LOOK_MS);
  }
  return false;
}

/** Whether a program runs that was started with this. @throws Error where there is no /proc */
async function someProgram(mark: string): Promise<boolean> {
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    // Those of other users, and what ended meanwhile, cannot be read.
    const environment = await readFile(`/proc/${entry}/environ`, 'latin1').catch(() => '');
    if (`\0${environment}\0`.includes(mark)) return true;
  }
  return false;
}
