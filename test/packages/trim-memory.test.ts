import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const MODULE = new URL('../../packages/cli/dist/processes/trim-memory.js', import.meta.url).href;

/** Grows V8's young generation, trims, waits until the generation is small again, and ends by itself. */
const PROGRAM = `
import { getHeapSpaceStatistics } from 'node:v8';
import { trimWhenIdle } from '${MODULE}';

const young = () => getHeapSpaceStatistics().find((one) => one.space_name === 'new_space').space_size;
let kept = [];
while (young() < 4 << 20) kept = Array.from({ length: 10_000 }, (_, i) => ({ i, before: kept[i] ? i : 0 }));
let checks = 0;
trimWhenIdle(() => (checks += 1) > 1);
const timer = setInterval(() => {
  if (young() >= 4 << 20) return;
  clearInterval(timer);
  console.log('trimmed at check', checks);
}, 20);
`;

it('a process that is idle at a check returns the memory of its start, and still ends', () => {
  const args = ['--input-type=module', '--eval', PROGRAM];
  const { stdout, stderr } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect({ stdout, stderr }).toEqual({ stdout: 'trimmed at check 2\n', stderr: '' });
});
