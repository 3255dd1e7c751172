// A census of real files: every file of a folder is one sub-request; several worker processes count
// them; the totals are compared with an independent walk of the same folder.
//
//   npm run demo                          the clone's own node_modules
//   npm run demo -- FOLDER                any other folder
//   npm run demo -- FOLDER --processes 4 --concurrency 16
//   npm run demo -- --dashboard           with a page that shows it live; it stays until Ctrl-C
import { statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { extname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { say, showProgress, WorkerFleet } from '@piecework/cli';
import { resolveRedisUrl } from '@piecework/embedded';
import Table from 'cli-table3';
import { nanoid } from 'nanoid';
import { Piecework, split } from 'piecework';
import prettyBytes from 'pretty-bytes';
import { addDigest, walk } from './walk.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    processes: { type: 'string', default: String(Math.max(2, availableParallelism())) },
    concurrency: { type: 'string', default: '8' },
    dashboard: { type: 'boolean', default: false },
  },
});
const nodeModules = fileURLToPath(new URL('../../node_modules', import.meta.url));
const folder = resolve(positionals[0] ?? nodeModules);
if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
  say(`${folder} is not a folder`);
  process.exit(2);
}
const number = (n) => n.toLocaleString('en-US');

const byExtension = new Map();
const largest = [];
const totals = { files: 0, bytes: 0, lines: 0, digest: 0n };
const failures = [];

function count({ path, bytes, lines, gzipBytes, sha256 }) {
  const extension = extname(path).toLowerCase() || '(none)';
  const sum = byExtension.get(extension) ?? { files: 0, bytes: 0, lines: 0, gzipBytes: 0 };
  byExtension.set(extension, {
    files: sum.files + 1,
    bytes: sum.bytes + bytes,
    lines: sum.lines + lines,
    gzipBytes: sum.gzipBytes + gzipBytes,
  });
  totals.files += 1;
  totals.bytes += bytes;
  totals.lines += lines;
  totals.digest = addDigest(totals.digest, sha256);
  if (largest.length < 10 || bytes > largest[9].bytes) {
    largest.push({ path, bytes, lines });
    largest.sort((a, b) => b.bytes - a.bytes);
    largest.length = Math.min(10, largest.length);
  }
}

/** Appends every file while workers count and results come in; ends at the completion. */
async function census(pw, fleet) {
  const open = await pw.open();
  requestId = open.id;
  say(`census of ${folder} by ${values.processes} worker processes`);
  const request = open.handle;
  const submit = async () => {
    for await (const path of split.files(folder)) await open.append(path);
    await open.seal();
  };
  const gather = async () => {
    for await (const result of request.results({ failed: true })) {
      if (result.status === 'succeeded') count(result.value);
      else failures.push(result);
    }
  };
  const show = showProgress(request.progress({ everyMs: 250 }));
  await Promise.race([redis.lost, fleet.lost, Promise.all([submit(), gather(), show])]);
  const outcome = await request.completion();
  await fleet.close();
  if (!values.dashboard) await request.drop();
  return outcome;
}

const redis = await resolveRedisUrl({ onStatus: say });
const queue = `census-${nanoid(8)}`;
/** Of the dashboard, whose port other users of this machine reach, too. */
const password = nanoid(24);
const pw = new Piecework({ redis: redis.url, queue });
let fleet;
let outcome;
let requestId;
let served;
// What works on a Redis of its own is of no use without it. `census` throws the error.
redis.lost.catch(() => fleet?.kill());
try {
  if (values.dashboard) {
    const { serveDashboard } = await import('@piecework/dashboard');
    const shown = { queues: [{ name: queue }], token: password, allowControl: true };
    served = await serveDashboard({ redis: redis.url, port: 0, ...shown });
    say(`dashboard: ${served.url} (any name, password ${password})`);
  }
  fleet = await WorkerFleet.start({
    redis: redis.url,
    queue,
    handler: fileURLToPath(new URL('./handler.mjs', import.meta.url)),
    processes: Number(values.processes),
    flags: [
      ...['--concurrency', values.concurrency, '--log-level', 'warn'],
      ...['--log-format', process.stderr.isTTY ? 'text' : 'json'],
    ],
    // Not over the progress bar.
    onErrorLine: say,
  });
  outcome = await census(pw, fleet);
} finally {
  await fleet?.close();
  // After an error, that error is shown.
  if (!outcome) await close().catch(() => {});
  else if (!served) await close();
}

async function close() {
  await served?.close();
  await pw.close();
  await redis.close();
}

const style = { head: [], border: [], compact: true };
/** What the other columns and the lines of the table leave for a path. */
const pathColumns = Math.max(20, Math.min(70, (process.stdout.columns ?? 96) - 26));
/** The end of a long path says more than its beginning. */
const short = (path) => (path.length > pathColumns ? `…${path.slice(1 - pathColumns)}` : path);
const colAligns = ['left', 'right', 'right', 'right', 'right'];
const extensions = new Table({
  head: ['extension', 'files', 'bytes', 'lines', 'gzip'],
  colAligns,
  style,
});
const rows = [...byExtension].sort(([, a], [, b]) => b.bytes - a.bytes);
for (const [extension, sum] of rows.slice(0, 20)) {
  const share = `${Math.round((100 * sum.gzipBytes) / Math.max(1, sum.bytes))} %`;
  extensions.push([extension, number(sum.files), prettyBytes(sum.bytes), number(sum.lines), share]);
}
console.log(extensions.toString());
if (rows.length > 20) console.log(`and ${rows.length - 20} more extensions`);
const top = new Table({ head: ['the ten largest files', 'bytes', 'lines'], colAligns, style });
for (const { path, bytes, lines } of largest) {
  top.push([short(relative(folder, path)), prettyBytes(bytes), number(lines)]);
}
console.log(top.toString());

for (const { index, error } of failures) say(`sub-request ${index} failed: ${error.message}`);
const independent = walk(folder);
let equal = outcome.status === 'succeeded';
for (const name of ['files', 'bytes', 'lines', 'digest']) {
  const same = totals[name] === independent[name];
  equal &&= same;
  const shown = (value) =>
    name === 'digest' ? value.toString(16).padStart(64, '0').slice(0, 16) : number(value);
  console.log(
    `${name.padEnd(7)}${shown(totals[name]).padStart(18)}   walk ${shown(independent[name]).padStart(18)}   ${same ? 'equal' : 'DIFFERENT'}`,
  );
}
console.log(equal ? 'The census equals the independent walk.' : 'The census and the walk DIFFER.');
process.exitCode = equal ? 0 : 1;
say(`
What to try next, here in the clone:
  npm run demo -- FOLDER --processes 4         the same with files of yours
  npm run demo -- --dashboard                  the same, with a page that shows it live
  npx piecework run --input README.md --exec 'wc -c' --out results.ndjson
                                               any program, for each line
  npx piecework dev                            a Redis for programs of yours
  npx piecework dev --dashboard                the same, with a page that shows a small fleet at work
  npx piecework dashboard --insecure           a page that shows what is on it, live
README.md has a program to copy ("The first program"), examples/ has more.`);
if (served) {
  say(`The dashboard still shows it: ${served.url}  Ctrl-C ends it.`);
  await new Promise((resolve) => process.once('SIGINT', resolve));
  await pw.admin.drop(requestId);
  await close();
}
