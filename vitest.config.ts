import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { flowAlone, overTls, testMode, testTags } from './test/support/mode.ts';

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
const exclude = [...configDefaults.exclude, ...excluded];

/**
 * Many short files: a process for each costs more than most of them do. What runs here puts back what it changes of
 * its process; what does not, or is judged by its process, belongs into another folder.
 */
const SHARING = 'test/{lua,flow}/**/*.test.ts';

/** What takes longest first, so that it is not waited for in the end; then those that share a process, in a row. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project, moduleId }: TestSpecification) =>
      moduleId.includes('/chaos/upheavals.') ? 0 : project.config.isolate ? 1 : 2;
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
          exclude: [...exclude, SHARING],
        },
      },
      {
        extends: true,
        test: {
          name: 'sharing',
          include: [SHARING],
          exclude: flowAlone ? [...exclude, 'test/lua/**'] : exclude,
          isolate: false,
          setupFiles: 'test/support/fresh.ts',
        },
      },
    ],
    sequence: { sequencer: LongFirst },
    ...(overTls ? { globalSetup: 'test/support/authority.ts' } : {}),
    pool: 'forks',
    // Each worker runs a Redis of its own, and many tests start further processes; as many wait for leases.
    maxWorkers: 3,
    // Far more than any takes: many start processes, and three files share two cores.
    testTimeout: 120_000,
    // The first hook may have to fetch a Redis.
    hookTimeout: 120_000,
    // A test that passes at the second try has found something.
    retry: 0,
    tags: testTags,
  },
});
