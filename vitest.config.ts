import { readdirSync } from 'node:fs';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { filesOfPart, isExhaustive } from './scripts/exhaustive.mjs';
import {
  flowAlone,
  overTls,
  testEvery,
  testMode,
  testPart,
  testTags,
} from './test/support/mode.ts';

/** What makes sense where. Not by arguments: to those, a name that is given would only be added. */
function whatToRun(): string {
  if (flowAlone) return 'test/flow/**/*.test.ts';
  if (testMode === 'cluster') return 'test/{flow,cluster,lua,crash,invariants}/**/*.test.ts';
  return 'test/**/*.test.ts';
}

/** `--exclude`, of which vitest tells the projects nothing. */
const excluded = process.argv.flatMap((argument, i, all) => {
  if (all[i - 1] === '--exclude') return [argument];
  return argument.startsWith('--exclude=') ? [argument.slice('--exclude='.length)] : [];
});

/** What is exhaustive, unless the command asks for it, for a kind of server, or names anything that it wants. */
function leftOut(): string[] {
  const isNamed = process.argv.slice(3).some((argument) => !argument.startsWith('-'));
  const which = process.env['PIECEWORK_TEST_WHICH'] ?? (isNamed ? 'all' : 'usual');
  if (which === 'all' || testMode !== 'embedded' || flowAlone) return [];
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .map((path) => `test/${path}`)
    .filter((path) => path.endsWith('.test.ts'));
  const exhaustive = files.filter(isExhaustive);
  if (which === 'usual') return exhaustive;
  const played = new Set(filesOfPart(exhaustive, testEvery, testPart));
  return files.filter((path) => !played.has(path));
}

const exclude = [...configDefaults.exclude, ...excluded, ...leftOut()];

/**
 * Many short files: a process for each costs more than most of them do. What runs here puts back what it changes of
 * its process; what does not, or is judged by its process, belongs into another folder.
 */
const SHARING = (() => {
  if (flowAlone) return ['test/flow/**/*.test.ts'];
  if (testMode === 'cluster') return ['test/{flow,lua,invariants}/**/*.test.ts'];
  const ofChaos = 'test/chaos/{judge,plan}*.test.ts';
  return ['test/{flow,lua,invariants,docs,mutations}/**/*.test.ts', ofChaos];
})();

/** Small files whose tests take tens of seconds: vitest goes by size, and would begin them last. */
const LONG = new RegExp(
  '/(flow/(clock-steps|sentinel|redrive|cli-service|spent|dead-connection|delayed-order|script-bounds|scheduler-scale|' +
    'end-cost|examples|cli-fleet|embedded-redis|(id-queue|delayed|timed)-examples?|queues-under-stress|durability)|' +
    'chaos/upheavals|crash/(busy-loop|lost-submissions|crash-limit|suspects|whole-life))\\.',
);

/** What takes longest first, so that it is not waited for in the end; then those that share a process, in a row. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project, moduleId }: TestSpecification) =>
      (project.config.isolate ? 0 : 2) + (LONG.test(moduleId) ? 0 : 1);
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'alone',
          include: [whatToRun()],
          exclude: [...exclude, ...SHARING],
        },
      },
      {
        extends: true,
        test: {
          name: 'sharing',
          include: SHARING,
          exclude,
          isolate: false,
          setupFiles: 'test/support/fresh.ts',
        },
      },
    ],
    sequence: { sequencer: LongFirst },
    ...(overTls ? { globalSetup: 'test/support/authority.ts' } : {}),
    pool: 'forks',
    // Most tests wait for leases and processes: three of these leave half of two cores idle.
    maxWorkers: 6,
    // A page or a server on a busy machine may take seconds.
    expect: { poll: { timeout: 15_000 } },
    // Far more than any takes: many start processes, and six files share two cores.
    testTimeout: 300_000,
    // The first hook may have to fetch a Redis.
    hookTimeout: 120_000,
    // A test that passes at the second try has found something.
    retry: 0,
    // Shared by the files of a process, as packages are: lua-source.mjs builds each script once.
    server: { deps: { external: [/\/scripts\/[\w-]+\.mjs$/] } },
    tags: testTags,
  },
});
