import { defineConfig } from 'vitest/config';
import { flowAlone, overTls, testMode, testTags } from './test/support/mode.ts';

/** What makes sense where. Not by arguments: to those, a name that is given would only be added. */
function whatToRun(): string {
  if (flowAlone) return 'test/flow/**/*.test.ts';
  if (testMode === 'cluster') return 'test/{flow,cluster,lua,crash,invariants}/**/*.test.ts';
  return 'test/**/*.test.ts';
}

export default defineConfig({
  test: {
    include: [whatToRun()],
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
