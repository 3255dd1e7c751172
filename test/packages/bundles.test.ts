import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BuildOptions, build } from 'esbuild';
import { expect } from 'vitest';
import { startWorker, tickNow } from '../support/fleet.js';
import { test } from '../support/flow.js';
import { programAt } from '../support/processes.js';
import { until } from '../support/until.js';

/*
 * Workers that their users bundle into one file, as docs/guide/bundling.md says, and run where no package is installed.
 * `npm run test:install` does it with other bundlers.
 */

/** Long enough for a thread that begins late on a busy machine. */
const LEASE_MS = 5_000;

const FORMATS = {
  cjs: { format: 'cjs' },
  esm: {
    format: 'esm',
    outExtension: { '.js': '.mjs' },
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
  },
} satisfies Record<string, BuildOptions>;

test('a bundled worker whose handler blocks the event loop keeps its lease', async ({ flow }) => {
  const outdir = await mkdtemp(join(tmpdir(), 'piecework-bundle-'));
  flow.after(() => rm(outdir, { recursive: true }));
  const producer = flow.producer();
  /** A worker of one bundle that has begun, and its request. */
  const begin = async (format: BuildOptions) => {
    const { metafile } = await build({
      entryPoints: [programAt('worker')],
      ...{ outdir, bundle: true, platform: 'node', target: 'node20', metafile: true },
      ...format,
    });
    const [out] = Object.keys(metafile?.outputs ?? {});
    const options = { concurrency: 1, leaseMs: LEASE_MS };
    const worker = await startWorker(flow, { told: 'block' }, options, undefined, out);
    const { id } = await producer.submit([7], { limit: 2 });
    await until(async () => (await worker.started()).length === 1, { what: 'it has begun' });
    return { worker, id };
  };
  const bundled = [await begin(FORMATS.cjs), await begin(FORMATS.esm)];
  const elsewhere: unknown[] = [];
  await flow.worker({ handler: (n) => void elsewhere.push(n) }).start();
  for (const { worker, id } of bundled) {
    const lease = async () =>
      Number((await flow.request(id).inspect())?.state[`lease:${worker.id}`] ?? 0);
    const began = await worker.began();
    // The main loop, which is blocked, has asked for one lease at most.
    await until(async () => (await lease()) > began + 2 * LEASE_MS, {
      what: 'the thread has renewed the lease',
      timeoutMs: 30_000,
    });
    await tickNow(flow, id);
    await worker.tell();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 0 });
    expect(await worker.started()).toEqual([0]);
  }
  expect(elsewhere).toEqual([]);
});
