import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { JournalError } from './evidence/read-journals.js';
import { soak } from './growth/soak.js';
import { judge } from './judge/judge.js';
import type { Verdict } from './judge/verdict.js';
import { combine } from './report/combine.js';
import { markdown, report, soakMarkdown, soakReport } from './report/report.js';

/*
 * Judges the journals of a run that has ended. Exit code 0: clean; 1: not clean, or a journal is corrupt; 2: wrong
 * usage.
 */

interface Format {
  readonly json: boolean;
  readonly markdown: boolean;
}

const program = new Command('judge')
  .description('Judges what the processes of a chaos or soak run wrote down.')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));

const formatted = (command: Command): Command =>
  command
    .option('--json', 'the whole verdict, samples included', false)
    .option('--markdown', 'tables for a page', false);

function show(verdict: Verdict, { json, markdown: page }: Format): void {
  const text = json ? JSON.stringify(verdict) : page ? markdown(verdict) : report(verdict);
  console.log(text);
  process.exitCode = verdict.clean ? 0 : 1;
}

formatted(program.command('run <folder>', { isDefault: true }))
  .description('one run, from the folder of its journals')
  .action(async (folder: string, format: Format) => show(await judge(folder), format));

formatted(program.command('combine <files...>'))
  .description('several runs as one, from the output of --json')
  .action((files: string[], format: Format) => {
    const verdicts = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as Verdict);
    show(combine(verdicts), format);
  });

formatted(program.command('soak <folder>'))
  .description('how fast memory grew')
  .option('--warm-up-ms <ms>', 'time to leave out at the start of each series', Number, 120_000)
  .action(
    async (folder: string, { json, markdown: page, warmUpMs }: Format & { warmUpMs: number }) => {
      const grown = await soak(folder, { warmUpMs });
      console.log(json ? JSON.stringify(grown) : page ? soakMarkdown(grown) : soakReport(grown));
    },
  );

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof JournalError ? error.message : error);
  process.exitCode = 1;
}
