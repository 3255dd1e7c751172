import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkOut } from '@piecework/bench/checkout';

/**
 * The programs of this revision, on the packages of another one. Processes of both revisions form one fleet on the same
 * keys, and write the same journals.
 */
export interface OtherRevision extends AsyncDisposable {
  /** Folder of the programs. */
  readonly programs: string;
}

/** @throws Error with the output of what failed */
export function otherRevision(revision: string, say: (line: string) => void): OtherRevision {
  const checkout = checkOut(revision, say);
  const remove = () => void checkout[Symbol.asyncDispose]();
  process.once('exit', remove);
  const programs = join(checkout.root, 'packages', 'chaos', 'dist');
  cpSync(fileURLToPath(new URL('..', import.meta.url)), programs, { recursive: true });
  return {
    programs,
    async [Symbol.asyncDispose]() {
      process.off('exit', remove);
      await checkout[Symbol.asyncDispose]();
    },
  };
}
