// A run of `piecework run` over a million generated lines (or `--lines N`), watched from outside:
// the resident memory of every Node process below it and, with `--window`, the memory of its Redis.
// Then every result is checked: each index once, in input order, with the right value.
//
//   node test/scale/big-run.mjs                                  results to a file
//   node test/scale/big-run.mjs --window 10000 --results discard no results, little Redis memory
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  createReadStream,
  createWriteStream,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';

const { values } = parseArgs({
  options: {
    lines: { type: 'string', default: '1000000' },
    window: { type: 'string' },
    results: { type: 'string', default: 'keep' },
  },
});
const count = Number(values.lines);
const keep = values.results === 'keep';
const folder = mkdtempSync(join(tmpdir(), 'piecework-big-'));
const program = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));
const handler = fileURLToPath(new URL('./double.mjs', import.meta.url));
const input = join(folder, 'big.ndjson');
const out = join(folder, 'out.ndjson');

async function generate() {
  const file = createWriteStream(input);
  for (let i = 0; i < count; i += 1) {
    const line = `${JSON.stringify({ n: i, text: 'x'.repeat(70) })}\n`;
    if (!file.write(line)) await once(file, 'drain');
  }
  file.end();
  await once(file, 'close');
}

/** Resident memory in MB of the process and everything below it that runs Node. */
function residentOf(root) {
  const parents = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      parents.set(Number(pid), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {}
  }
  const isBelow = (pid) =>
    pid === root || (parents.has(pid) && parents.get(pid) > 1 && isBelow(parents.get(pid)));
  const resident = {};
  for (const pid of parents.keys()) {
    if (!isBelow(pid)) continue;
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      if (!/^Name:\s+(node|MainThread)/m.test(status)) continue;
      resident[pid] = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024;
    } catch {}
  }
  return resident;
}

async function checkOutput() {
  let expected = 0;
  for await (const line of createInterface({ input: createReadStream(out), crlfDelay: Infinity })) {
    const { index, status, value } = JSON.parse(line);
    if (index !== expected || status !== 'succeeded' || value !== 2 * index) {
      throw new Error(`line ${expected} is ${line.slice(0, 200)}`);
    }
    expected += 1;
  }
  if (expected !== count) throw new Error(`${expected} results of ${count}`);
}

const redis = await startRedis();
const probe = new Redis(redis.url);
try {
  await generate();
  const args = [
    'run',
    '--input',
    input,
    '--split',
    'ndjson',
    '--handler',
    handler,
    '--processes',
    '2',
    '--concurrency',
    '50',
    '--limit',
    '100',
    '--results',
    values.results,
    ...(keep ? ['--out', out] : []),
    ...(values.window ? ['--window', values.window] : []),
  ];
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, REDIS_URL: redis.url },
  });
  const peaks = {};
  let redisPeak = 0;
  const sampling = setInterval(async () => {
    for (const [pid, megabytes] of Object.entries(residentOf(child.pid))) {
      peaks[pid] = Math.max(peaks[pid] ?? 0, megabytes);
    }
    const info = await probe.info('memory');
    redisPeak = Math.max(redisPeak, Number(/used_memory:(\d+)/.exec(info)[1]) / 1e6);
  }, 200);
  const [code] = await once(child, 'exit');
  clearInterval(sampling);
  if (keep) await checkOutput();
  const left = await probe.keys('*');
  const shown = Object.values(peaks).map((megabytes) => Math.round(megabytes));
  console.log(
    `exit code ${code} · ${count} lines · peak RSS of each Node process (MB): ${shown.join(', ')}`,
  );
  console.log(
    `peak used_memory of Redis: ${redisPeak.toFixed(1)} MB · keys left: ${left.join(' ') || 'none'}`,
  );
  if (keep) console.log('every index once, in input order, with the right value');
  const tooBig = shown.some((megabytes) => megabytes > 250);
  const tooFull = values.window !== undefined && !keep && redisPeak > 60;
  if (tooBig || tooFull || code !== 0) process.exitCode = 1;
} finally {
  probe.disconnect();
  await redis.close();
  rmSync(folder, { recursive: true, force: true });
}
