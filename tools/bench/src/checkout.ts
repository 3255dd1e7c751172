import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REPOSITORY } from './machine.js';

/** Another revision of this repository, checked out and built beside this one. */
export interface Checkout extends AsyncDisposable {
  readonly root: string;
}

/**
 * Checks a revision out into a git worktree in a temporary folder, and sets it up by its own script. Packages that are
 * installed here come from pnpm's store, without the network.
 * @throws Error with the output of the command that failed; the worktree is removed then
 */
export function checkOut(revision: string, onStatus: (text: string) => void): Checkout {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-bench-'));
  const root = join(folder, 'checkout');
  const remove = () => {
    process.off('SIGINT', interrupt);
    if (existsSync(root)) command('git', ['worktree', 'remove', '--force', root], REPOSITORY);
    rmSync(folder, { recursive: true, force: true });
  };
  const interrupt = () => {
    remove();
    process.exit(130);
  };
  // Before the worktree is made: otherwise it would outlive an interrupted build.
  process.once('SIGINT', interrupt);
  try {
    onStatus(`checking out and building ${revision}`);
    command('git', ['worktree', 'add', '--detach', root, revision], REPOSITORY);
    command(process.execPath, ['scripts/setup.mjs'], root);
  } catch (error) {
    remove();
    throw error;
  }
  return { root, [Symbol.asyncDispose]: async () => remove() };
}

function command(file: string, args: string[], cwd: string): void {
  const { status, error, stdout, stderr } = spawnSync(file, args, { cwd, encoding: 'utf8' });
  if (status === 0) return;
  throw new Error(`${file} ${args.join(' ')} failed: ${error?.message ?? ''}${stdout}${stderr}`);
}
