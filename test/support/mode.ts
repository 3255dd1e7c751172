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

/**
 * PIECEWORK_TEST_ACL=1: producers and workers of the flow tests, and all else that they open at
 * `flow.redis`, connect as the ACL users of docs/operations.md, and nobody may be denied anything.
 */
export const underAcl = process.env['PIECEWORK_TEST_ACL'] === '1';

/**
 * PIECEWORK_TEST_TLS=1: every server that a test asks for speaks TLS and nothing else. Who connects
 * believes its certificate by NODE_EXTRA_CA_CERTS, which test/support/authority.ts sets.
 */
export const overTls = process.env['PIECEWORK_TEST_TLS'] === '1';

if (overTls && testMode !== 'embedded') {
  throw new Error(`over TLS there are servers of this machine alone, no '${testMode}'`);
}

/** Flow tests alone make sense there. */
export const flowAlone = underAcl || overTls;

function readMode(text: string): TestMode {
  const mode = MODES.find((each) => each === text);
  if (mode === undefined) {
    throw new Error(`PIECEWORK_TEST_REDIS is '${text}'; it may be ${MODES.join(', ')}`);
  }
  return mode;
}

/**
 * PIECEWORK_TEST_EVERY=5: of cases that are many, long and alike (calls that meet a fault, configurations
 * of the model, figures of the benchmarks) every fifth is played, and chaos is shorter. PIECEWORK_TEST_PART=3
 * chooses which fifth: 3, 8, 13 …
 */
export const testEvery = Number(process.env['PIECEWORK_TEST_EVERY'] || 1);
export const testPart = Number(process.env['PIECEWORK_TEST_PART'] || 0) % testEvery;

/** `--all`: tests of random cases, and of cases with several measures, play their long form; else a short one. */
export const playsAll = process.env['PIECEWORK_TEST_WHICH'] === 'all';

/** Those of such cases that are played: at least one, also of fewer cases than parts. */
export const partOf = <Case>(cases: readonly Case[]): Case[] =>
  cases.filter((_, i) => i % testEvery === testPart % Math.min(testEvery, cases.length));

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
    shared || flowAlone ? 'starts servers of its own' : false,
  ),
  tag(
    'one-server',
    'makes no sense in a cluster',
    testMode === 'cluster' && 'needs one server: counts its connections, or makes it stand still',
  ),
  tag(
    'only-cluster',
    'makes sense in a cluster only',
    testMode !== 'cluster' && 'needs a cluster (npm run test:cluster)',
  ),
  tag(
    'plain',
    'reads what passes on the wire, or has servers that copy each other without TLS',
    overTls && 'reads what passes on the wire, or has servers that copy each other without TLS',
  ),
];
