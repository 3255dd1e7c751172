// `piecework …` processes of the test, each with its port.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../../../packages/cli/bin/piecework.js', import.meta.url));
const STARTED = /"port":(\d+)[^\n]*"msg":"(?:exporter|metrics endpoint) listens"/;
const SERVED = /http:\/\/127\.0\.0\.1:(\d+)\//;

/** Waits until `condition` holds, and returns what it returned. @throws Error that names what it waited for */
export async function until(condition, what, forMs = 240_000) {
  const end = performance.now() + forMs;
  let last;
  while (performance.now() < end) {
    last = await condition();
    if (last) return last;
    await sleep(200);
  }
  throw new Error(`waited in vain until ${what}`);
}

/** Starts a command, and waits until it listens. */
export async function start(redis, ...args) {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, REDIS_URL: redis, PIECEWORK_DASHBOARD_TOKEN: 'a-token-of-the-test' },
  });
  let said = '';
  for (const output of [child.stdout, child.stderr])
    output.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
  const found = await until(() => {
    if (child.exitCode !== null) throw new Error(`${args.join(' ')} ended: ${said}`);
    return STARTED.exec(said) ?? (args[0] === 'dashboard' && SERVED.exec(said));
  }, `${args[0]} listens`);
  return {
    pid: child.pid,
    port: Number(found[1]),
    kill: (signal) => child.kill(signal),
    close: async () => {
      child.kill('SIGCONT');
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}
