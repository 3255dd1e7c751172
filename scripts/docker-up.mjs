// Builds the image, and runs deploy/docker/compose.yaml with it until Ctrl-C.
//
//   npm run docker:up
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { requireCompose, requireEngine, wrapped } from './docker-engine.mjs';
import { buildImage } from './docker-image.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const {
  PIECEWORK_IMAGE: tag,
  PIECEWORK_DASHBOARD_PORT: dashboardPort = '4000',
  PIECEWORK_EXPORTER_PORT: exporterPort = '9465',
  // Other ones each time, unless you choose them: nobody else knows these.
  PIECEWORK_DASHBOARD_TOKEN: token = randomBytes(24).toString('hex'),
  REDIS_PASSWORD: redisPassword = randomBytes(24).toString('hex'),
  REDIS_IMAGE: redisImage = 'redis:7.4-alpine',
} = process.env;

// First, as setup and image take a minute or two.
requireEngine('nothing was started');
const [command, ...args] = requireCompose('nothing was started');
await import('./setup.mjs');
try {
  buildImage({ tag });
} catch (error) {
  console.error(`no image was built: ${error.message}`);
  process.exit(1);
}

const password = process.env.PIECEWORK_DASHBOARD_TOKEN ? 'in PIECEWORK_DASHBOARD_TOKEN' : token;
console.error(
  `dashboard  http://127.0.0.1:${dashboardPort}  any name, the password is ${password}`,
);
console.error(`metrics    http://127.0.0.1:${exporterPort}/metrics`);
console.error('Ctrl-C stops all containers.');
// Compose gets the signal, too. It stops the containers, and then this process may end.
let isStopped = false;
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    isStopped = true;
  });
const file = ['--project-name', 'piecework', '--file', 'deploy/docker/compose.yaml'];
// A person reads the log of the containers here.
const env = {
  PIECEWORK_LOG_FORMAT: process.stdout.isTTY ? 'text' : 'json',
  ...process.env,
  PIECEWORK_DASHBOARD_TOKEN: token,
  REDIS_PASSWORD: redisPassword,
  REDIS_IMAGE: redisImage,
};
const options = { cwd: root, env, stdio: 'inherit' };
const [code] = await once(spawn(command, [...args, ...file, 'up'], options), 'exit');
process.exitCode = code ?? 1;
if (code !== 0 && !isStopped) {
  // Some of them may run.
  spawnSync(command, [...args, ...file, 'stop'], options);
  const said =
    'The containers did not come up; the reason is above. If a port is taken, set PIECEWORK_DASHBOARD_PORT or PIECEWORK_EXPORTER_PORT to another one.';
  console.error(wrapped(said));
}
