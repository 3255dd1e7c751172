import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import tab from '@bomb.sh/tab/commander';
import type { Command } from 'commander';

/** Flags whose value is a path. */
const PATHS = ['handler', 'input', 'out', 'dir'];

/**
 * `piecework complete bash|zsh|fish|powershell` prints a script for the shell, which then asks
 * `piecework complete -- …`. Commands, flags and words come from the definitions of the commands.
 */
export function completeCommand(program: Command): void {
  const root = tab(program);
  for (const command of root.commands.values()) {
    for (const name of PATHS) {
      const flag = command.options.get(name);
      if (flag) flag.handler = completePaths;
    }
  }
}

/** What lies where the last word points to. The library leaves out what does not begin like it. */
function completePaths(complete: (value: string, description: string) => void): void {
  const word = process.argv.at(-1) ?? '';
  const folder = word.endsWith('/') ? word : dirname(word);
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = word.startsWith('.') || folder !== '.' ? join(folder, entry.name) : entry.name;
      const shown = word.startsWith('./') && !path.startsWith('.') ? `./${path}` : path;
      complete(entry.isDirectory() ? `${shown}/` : shown, '');
    }
  } catch {
    // No such folder: nothing to offer.
  }
}
