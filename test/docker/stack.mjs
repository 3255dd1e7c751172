// Builds the image, starts deploy/docker/compose.yaml with it, runs a request through it, looks at what the containers
// may do, and removes all of it. Needs Docker with Compose; takes a minute or two.
//
//   npm run test:docker                      on node:22-slim and redis:7.4-alpine
//   npm run test:docker -- --local-images    where no registry can be reached: on this machine's Node and Redis
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { requireCompose, requireEngine } from '../../scripts/docker-engine.mjs';
import { buildImage } from '../../scripts/docker-image.mjs';
import { LOCAL_NODE, LOCAL_REDIS, makeLocalImages } from './local-images.mjs';

const IMAGE = 'piecework-test/piecework:local';
const PROJECT = 'piecework-test';
const PORT = '47113';
const EXPORTER_PORT = '47114';
const TOKEN = 'token-of-this-test';
// First, as the setup takes a minute in a fresh clone.
requireEngine('nothing was tested');
const compose = requireCompose('nothing was tested');
await import('../../scripts/setup.mjs');

const local = process.argv.includes('--local-images');
const root = fileURLToPath(new URL('../..', import.meta.url));
const env = {
  ...process.env,
  PIECEWORK_IMAGE: IMAGE,
  PIECEWORK_DASHBOARD_PORT: PORT,
  PIECEWORK_DASHBOARD_TOKEN: TOKEN,
  PIECEWORK_EXPORTER_PORT: EXPORTER_PORT,
  REDIS_PASSWORD: 'password-of-this-test',
  REDIS_IMAGE: local ? LOCAL_REDIS : 'redis:7.4-alpine',
};

function run(command, args, { input = '', code = 0 } = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: root,
    env,
    input,
    encoding: 'utf8',
  });
  if (status !== code)
    throw new Error(
      `exit code ${status} ${error ?? ''} of ${command} ${args.join(' ')}\n${stdout}${stderr}`,
    );
  return stdout.trim();
}

const stack = (...args) => {
  const [command, ...first] = compose;
  const file = ['--project-name', PROJECT, '--file', 'deploy/docker/compose.yaml'];
  return (options) => run(command, [...first, ...file, ...args], options);
};
const cli = (args, options) => stack('run', '--rm', '-T', 'cli', ...args)(options);
const containerOf = (service) => stack('ps', '-q', service)();

function expect(what, found, wanted) {
  const [fits] =
    wanted instanceof RegExp ? (wanted.exec(found) ?? []) : [found === wanted && found];
  if (fits === undefined || fits === false)
    throw new Error(`${what}: expected ${wanted}, found ${found}`);
  console.log(`ok  ${what}: ${fits}`);
}

async function until(what, condition) {
  for (let tries = 0; tries < 300; tries += 1) {
    if (await condition()) return;
    await sleep(200);
  }
  throw new Error(`not within a minute: ${what}`);
}

/** What a process in the container of a service sees of itself. */
const seenIn = (service, script) =>
  run('docker', ['exec', containerOf(service), 'node', '-e', script]);

async function useStack() {
  const workers = () => cli(['workers', '--json']).split('\n').filter(Boolean).length;
  await until('two workers are registered', () => workers() === 2);
  const lines = Array.from({ length: 500 }, (_, i) => JSON.stringify('x'.repeat(i % 50))).join(
    '\n',
  );
  const submit = ['submit', '--id', 'through', '--input', '-', '--split', 'ndjson', '--wait'];
  cli(submit, { input: `${lines}\n` });
  const { outcome, counts } = JSON.parse(cli(['status', 'through', '--json']));
  expect('a request goes through', `${outcome}, ${counts.succeeded}`, 'succeeded, 500');
  const results = cli(['results', 'through', '--order', 'index']).split('\n');
  expect('all results are there', results.length, 500);
  expect('a result is right', JSON.parse(results[49]).value, 51);

  const ping = (...auth) =>
    run('docker', ['exec', '-e', 'REDISCLI_AUTH=', containerOf('redis'), 'redis-cli', ...auth]);
  expect('Redis lets nobody in without the password', ping('ping'), /NOAUTH/);
  const args = ['inspect', '--format', '{{json .Args}}{{json .Config.Healthcheck}}'];
  const shown = run('docker', [...args, containerOf('redis')]);
  expect('no argument is the password', shown.split(env.REDIS_PASSWORD).length, 1);

  const base = `http://127.0.0.1:${PORT}`;
  const asked = async (headers) => (await fetch(`${base}/`, { headers })).status;
  const basic = `Basic ${Buffer.from(`any:${TOKEN}`).toString('base64')}`;
  await until('the dashboard answers', () => asked({}).catch(() => false));
  expect('the dashboard lets nobody in without the token', await asked({}), 401);
  expect('the dashboard lets one in with the token', await asked({ authorization: basic }), 200);

  const from = async (path) => (await fetch(`http://127.0.0.1:${EXPORTER_PORT}${path}`)).text();
  await until('the exporter answers', () => from('/metrics').catch(() => ''));
  expect('the exporter counts', await from('/metrics'), /^piecework_queue_workers.* 2$/m);
  expect('a scaler is told the slots', JSON.parse(await from('/scale')).neededSlots, 0);

  expect('the user is not root', seenIn('worker-1', 'console.log(process.getuid())'), '1000');
  const write = (path) =>
    `try { fs.writeFileSync('${path}', '') } catch (e) { console.log(e.code) }`;
  expect('the file system is read-only', seenIn('worker-1', write('/app/x')), 'EROFS');
  const caps =
    "console.log(/CapEff:\\s*(\\w+)/.exec(fs.readFileSync('/proc/self/status','utf8'))[1])";
  expect('there are no capabilities', seenIn('worker-1', caps), /^0+$/);
  const ready = "fetch('http://127.0.0.1:8080/ready').then((a) => console.log(a.status))";
  expect('a worker is ready', seenIn('worker-1', ready), '200');
  const scrape =
    "fetch('http://worker-1:8080/metrics').then((a) => a.text()).then((text) => console.log(text))";
  expect(
    'others read the metrics of a worker',
    seenIn('exporter', scrape),
    /^piecework_worker_slots.* 20$/m,
  );

  const stopped = containerOf('worker-2');
  run('docker', ['stop', '--time', '40', stopped]);
  const state = run('docker', [
    'inspect',
    '--format',
    '{{.State.ExitCode}} {{.State.OOMKilled}}',
    stopped,
  ]);
  expect('SIGTERM ends a worker in order', state, '0 false');
  await until('its registration is gone', () => workers() === 1);

  const wrong = ['run', '--rm', IMAGE, 'worker', '--handler', '/app/none.mjs'];
  run('docker', wrong, { code: 2 });
  expect('a missing handler is wrong usage', 2, 2);
  const version = run('docker', ['run', '--rm', '--entrypoint', 'piecework', IMAGE, '--version']);
  expect('`piecework` is on PATH', version, /^\d+\.\d+\.\d+$/);
}

const start = performance.now();
try {
  if (local) makeLocalImages();
  buildImage({ tag: IMAGE, ...(local ? { base: LOCAL_NODE } : {}) });
  stack('up', '--detach')();
  await useStack();
} catch (error) {
  console.error(error.message);
  for (const logs of [stack('ps'), stack('logs', '--tail', '20')]) {
    try {
      console.error(logs());
    } catch {}
  }
  process.exitCode = 1;
} finally {
  try {
    stack('down', '--volumes', '--timeout', '40')();
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
if (process.exitCode !== 1) {
  const filter = `label=com.docker.compose.project=${PROJECT}`;
  expect('nothing is left', run('docker', ['ps', '--all', '--quiet', '--filter', filter]), '');
  console.log(`all of it in ${((performance.now() - start) / 1_000).toFixed(0)} s`);
}
