import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import tab from '@bomb.sh/tab';
import { InvalidOptionError } from '@piecework/protocol';
import type { Command, Option } from 'commander';

/** Flags whose value is a path. */
const PATHS = ['--handler', '--input', '--out', '--dir'];
const SHELLS = ['bash', 'zsh', 'fish', 'powershell'];

/**
 * Bash's script is ours: it needs no other package, and passes the words on as they are. What comes
 * back is one offer a line, with a description behind a tab, and a line with a colon for the shell.
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
      if (shell === 'bash') console.log(BASH);
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

/** What may stand behind a flag; undefined for a flag without a value. */
function offersOf(option: Option) {
  if (!option.required) return undefined;
  return (complete: (value: string, description: string) => void) => {
    if (PATHS.includes(option.long ?? '')) offerPaths(complete);
    for (const word of option.argChoices ?? []) complete(word, '');
  };
}

/** What lies where the last word points to. The library leaves out what does not begin like it. */
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
    // No such folder: nothing to offer.
  }
}
