/*
 * Where the tests get their Redis from, by PIECEWORK_TEST_REDIS:
 *
 *   embedded  processes of this machine, one server per test file (the default)
 *   docker    containers of PIECEWORK_TEST_REDIS_IMAGE, one per test file
 *   url       the server at PIECEWORK_TEST_REDIS_URL, which others may be using
 *   cluster   a Redis Cluster of processes of this machine
 */

const MODES = ['embedded', 'docker', 'url', 'cluster'] as const;
export type TestMode = (typeof MODES)[number];

export const testMode = readMode(process.env['PIECEWORK_TEST_REDIS'] || 'embedded');

function readMode(text: string): TestMode {
  const mode = MODES.find((each) => each === text);
  if (mode === undefined) {
    throw new Error(`PIECEWORK_TEST_REDIS is '${text}'; it may be ${MODES.join(', ')}`);
  }
  return mode;
}

/** The image of the `docker` mode, and of the tests that start a container in every mode. */
export const testImage = process.env['PIECEWORK_TEST_REDIS_IMAGE'] || 'redis:7.4';

/*
 * Tests say by a tag what they need of a server; here is what that means in each mode. The reason
 * stands in the report as `meta.skipped`.
 */

declare module 'vitest' {
  interface TaskMeta {
    /** Why the test is skipped, if it is. */
    skipped?: string;
  }
}

const tag = (name: string, description: string, skipped: false | string) => ({
  name,
  description,
  // No word when it is not skipped: of several tags the last word would count.
  ...(skipped === false ? {} : { skip: true, meta: { skipped } }),
});

const shared = testMode === 'url';

export const testTags = [
  tag(
    'own-server',
    'kills, fills, flushes or freezes its server, cuts connections of others, or counts all there is',
    shared && 'needs a server that nobody else uses',
  ),
  tag(
    'processes',
    'starts servers as processes of this machine, whatever the mode',
    shared && 'starts servers of its own',
  ),
  tag(
    'one-server',
    'makes no sense in a cluster',
    testMode === 'cluster' && 'looks at the connections of one server',
  ),
  tag(
    'only-cluster',
    'makes sense in a cluster only',
    testMode !== 'cluster' && 'needs a cluster (npm run test:cluster)',
  ),
];
