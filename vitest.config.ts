import { defineConfig } from 'vitest/config';
import { testTags } from './test/support/mode.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // Each worker runs a Redis of its own, and many tests start further processes; as many wait for leases.
    maxWorkers: 3,
    testTimeout: 60_000,
    // The first hook may have to fetch a Redis.
    hookTimeout: 120_000,
    // A test that passes at the second try has found something.
    retry: 0,
    tags: testTags,
  },
});
