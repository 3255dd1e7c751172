// Runs the tests on containers of every server that Piecework supports, one image after the other. Arguments are
// further images. An image that cannot be pulled is skipped with a message. Fails when a test fails, and when nothing
// was tested. `--pull-seconds N`: how long one pull may take (default 120).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { requireEngine, whyNoImage } from './docker-engine.mjs';

const IMAGES = [
  ...['7.0', '7.2', '7.4', '8'].map((version) => `redis:${version}`),
  ...['7.2', '8', '9'].map((version) => `valkey/valkey:${version}`),
];
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { 'pull-seconds': { type: 'string', default: '120' } },
});
const pullMs = Number(values['pull-seconds']) * 1_000;
const tests = fileURLToPath(new URL('./test.mjs', import.meta.url));

/** Runs the tests on one image. Answers the last lines of their output. */
async function testOn(image) {
  // Tests that start servers of this machine would give the same result for each image.
  const args = [tests, '--tagsFilter=!processes'];
  const env = {
    ...process.env,
    PIECEWORK_TEST_REDIS: 'docker',
    PIECEWORK_TEST_REDIS_IMAGE: image,
  };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let tail = '';
  child.stdout.on('data', (chunk) => {
    process.stdout.write(chunk);
    tail = (tail + chunk).slice(-2_000);
  });
  const [status] = await once(child, 'close');
  return { failed: status !== 0, summary: tail.trimEnd().split('\n').at(-1) };
}

requireEngine('nothing was tested');
const lines = [];
const outcomes = [];
for (const image of [...IMAGES, ...positionals]) {
  const reason = whyNoImage(image, { pullMs });
  if (reason) {
    console.log(`\n== skipping ${image}: ${reason}`);
    lines.push(`${image}: skipped: ${reason}`);
    continue;
  }
  console.log(`\n== ${image}`);
  const { failed, summary } = await testOn(image);
  outcomes.push(failed);
  lines.push(`${image}: ${summary}${failed ? ' (FAILED)' : ''}`);
}
console.log(`\n${lines.join('\n')}`);
if (outcomes.length === 0) console.error('nothing was tested: no image is available');
process.exitCode = outcomes.length === 0 || outcomes.includes(true) ? 1 : 0;
