// Runs every check, one step after the other, for about two hours on two cores, and ends with the result of each step.
// Arguments choose steps by name. Exits with 1 when one failed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const STEPS = {
  tests: ['scripts/test.mjs', '--all'],
  cluster: ['scripts/test.mjs', '--cluster'],
  acl: ['scripts/test.mjs', '--acl'],
  tls: ['scripts/test.mjs', '--tls'],
  model: ['scripts/model-check.mjs'],
  mutants: ['scripts/mutation-score.mjs'],
  interleavings: ['test/interleavings/run.mjs'],
  chaos: ['tools/chaos/dist/main.js', 'chaos', '--all'],
  rollbacks: ['test/scale/rollbacks.mjs'],
  install: ['test/packages/install.mjs'],
};
const cwd = fileURLToPath(new URL('..', import.meta.url));
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in STEPS));
if (unknown.length > 0) {
  console.error(`no step ${unknown.join(', ')}; there are ${Object.keys(STEPS).join(', ')}`);
  process.exit(2);
}
const said = [];
for (const [name, command] of Object.entries(STEPS)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  console.log(`== ${name}: node ${command.join(' ')}`);
  const begun = performance.now();
  const [code, signal] = await once(
    spawn(process.execPath, command, { cwd, stdio: 'inherit' }),
    'exit',
  );
  const minutes = ((performance.now() - begun) / 60_000).toFixed(1);
  said.push(
    `${name.padEnd(14)} ${minutes.padStart(6)} min  ${code === 0 ? 'passed' : `FAILED (${signal ?? code})`}`,
  );
  if (code !== 0) process.exitCode = 1;
}
console.log(said.join('\n'));
