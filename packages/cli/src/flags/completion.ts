import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import tab from '@bomb.sh/tab';
import { InvalidOptionError } from '@piecework/protocol/contract';
import type { Command, Option } from 'commander';
import { print } from '../terminal/print.js';

/** Flags whose value is a path. */
const PATHS = [
  '--handler',
  '--input',
  '--out',
  '--out-dir',
  '--dir',
  '--token-file',
  '--auth-file',
  '--mask',
];
const SHELLS = ['bash', 'zsh', 'fish', 'powershell'];

/**
 * Our own script for bash: it does not need the package bash-completion, and passes the words on unchanged.
 * `piecework complete` answers with one offer a line, its description after a tab; lines with a colon are directives.
 */
const BASH = `_piecework() {
  local offer
  COMPREPLY=()
  while IFS=$'\\t' read -r offer _; do
    [[ -n $offer && $offer != :* ]] && COMPREPLY+=("$offer")
  done < <(piecework complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _piecework piecework`;

/**
 * `piecework complete bash|zsh|fish|powershell` prints a script for the shell, which then asks
 * `piecework complete -- WORD…`. Commands, flags and words come from the definitions of the commands.
 */
export function completeCommand(program: Command): void {
  program
    .command('complete')
    .argument('[words...]', SHELLS.join(', '))
    .usage(SHELLS.join(' | '))
    .description('print a script that completes commands and flags in your shell')
    .allowUnknownOption()
    .action((words: string[]) => {
      describeCommands(program);
      if (process.argv[3] === '--') return tab.parse(words);
      const [shell = ''] = words;
      if (words.length !== 1 || !SHELLS.includes(shell)) {
        throw new InvalidOptionError('shell', shell, SHELLS.join(', '));
      }
      if (shell === 'bash') print(...BASH.split('\n'));
      else tab.setup('piecework', 'piecework', shell);
    });
}

function describeCommands(program: Command): void {
  for (const command of program.commands) {
    const described = tab.command(command.name(), command.description());
    for (const option of command.options) {
      const name = option.long?.slice(2) ?? '';
      const offers = offersOf(option);
      if (offers) described.option(name, option.description, offers);
      else described.option(name, option.description);
    }
  }
}

/** Offers the values of a flag; undefined for a flag without a value. */
function offersOf(option: Option) {
  if (!option.required) return undefined;
  return (complete: (value: string, description: string) => void) => {
    if (PATHS.includes(option.long ?? '')) offerPaths(complete);
    for (const word of option.argChoices ?? []) complete(word, '');
  };
}

/** Offers the files of the folder that the last word names. The library keeps those that begin with the word. */
function offerPaths(complete: (value: string, description: string) => void): void {
  const word = process.argv.at(-1) ?? '';
  const folder = word.endsWith('/') ? word : dirname(word);
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = word.startsWith('.') || folder !== '.' ? join(folder, entry.name) : entry.name;
      const shown = word.startsWith('./') && !path.startsWith('.') ? `./${path}` : path;
      complete(entry.isDirectory() ? `${shown}/` : shown, '');
    }
  } catch {
    // There is no such folder.
  }
}
