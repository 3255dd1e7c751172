import type { Command } from 'commander';

type Add = (program: Command) => void;

interface Group {
  readonly names: readonly string[];
  /** Loads the module of these commands. @returns what adds them to the program */
  load(): Promise<Add>;
}

/** The commands in the order of the help. */
const GROUPS: readonly Group[] = [
  { names: ['run'], load: async () => (await import('./commands/run.js')).runCommand },
  { names: ['submit'], load: async () => (await import('./commands/submit.js')).submitCommand },
  { names: ['worker'], load: async () => (await import('./commands/worker.js')).workerCommand },
  { names: ['status'], load: async () => (await import('./commands/status.js')).statusCommand },
  { names: ['results'], load: async () => (await import('./commands/results.js')).resultsCommand },
  {
    names: ['failures', 'errors'],
    load: async () => (await import('./commands/failures.js')).failureCommands,
  },
  { names: ['redrive'], load: async () => (await import('./commands/redrive.js')).redriveCommand },
  {
    names: ['cancel', 'pause', 'resume', 'update', 'drop'],
    load: async () => (await import('./commands/control.js')).controlCommands,
  },
  {
    names: ['list', 'workers'],
    load: async () => (await import('./commands/list.js')).listCommands,
  },
  { names: ['watch'], load: async () => (await import('./commands/watch.js')).watchCommand },
  { names: ['top'], load: async () => (await import('./commands/top.js')).topCommand },
  { names: ['doctor'], load: async () => (await import('./commands/doctor.js')).doctorCommand },
  {
    names: ['dashboard'],
    load: async () => (await import('./commands/dashboard.js')).dashboardCommand,
  },
  {
    names: ['exporter'],
    load: async () => (await import('./commands/exporter.js')).exporterCommand,
  },
  { names: ['dev'], load: async () => (await import('./commands/dev.js')).devCommand },
  // Its answers come from the definitions of all commands.
  { names: [], load: async () => (await import('./flags/completion.js')).completeCommand },
];

/**
 * Adds the command that is called `word`, and loads nothing that only the others need. Adds all commands, for help,
 * completion and an advice about a name that is wrong, where `word` is none of them.
 */
export async function addCommands(program: Command, word = ''): Promise<void> {
  const wanted = GROUPS.filter(({ names }) => names.includes(word));
  const loaded = await Promise.all((wanted.length > 0 ? wanted : GROUPS).map((one) => one.load()));
  for (const add of loaded) add(program);
}
