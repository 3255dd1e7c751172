// What tests need of the Docker engine, through its command line: whether it answers, whether an image is available,
// and the removal of containers that a test run left behind.
import { spawnSync } from 'node:child_process';
import { hostname } from 'node:os';

/** Label of every container of a test run. Its value is `<host>:<process id>` of the process that runs the tests. */
export const RUN_LABEL = 'piecework.test.run';

/** Runs `docker …`. Answers undefined when it succeeds, else the reason in one line. */
function refusal(args, timeoutMs) {
  const options = { encoding: 'utf8', timeout: timeoutMs, stdio: ['ignore', 'pipe', 'pipe'] };
  const { status, error, stdout, stderr } = spawnSync('docker', args, options);
  if (error?.code === 'ENOENT') return 'there is no docker on PATH';
  if (error?.code === 'ETIMEDOUT') return `no answer within ${timeoutMs / 1_000} s`;
  if (error) return error.message;
  if (status === 0) return undefined;
  // `docker info` of Docker 20 prints the reason on standard output.
  const [, reason] = /^ERROR: (.+)/m.exec(stdout) ?? [];
  return reason ?? (stderr.trim().split('\n').at(-1) || `exit code ${status}`);
}

/** Undefined when a Docker engine answers, else the reason why not. */
export function whyNoEngine() {
  const reason = refusal(['info'], 10_000);
  return reason && `no Docker engine answers: ${reason}`;
}

/** What to do about the reason that `whyNoEngine` gave. */
function cureOf(reason) {
  if (reason.includes('no docker on PATH')) return 'Install Docker.';
  if (reason.includes('permission denied'))
    return 'Run it as root, or as a user of the group docker.';
  return 'Start the engine (systemctl start docker, or Docker Desktop).';
}

/** Ends this process, and says what to do, unless a Docker engine answers. `unmade`: 'no image was built' */
export function requireEngine(unmade) {
  const reason = whyNoEngine();
  if (reason) refuse(`${unmade}: ${reason}`, `${cureOf(reason)} Then give the command again.`);
}

/** Compose as a plugin of Docker, or as the older program of its own. Ends this process if there is none. */
export function requireCompose(unmade) {
  const found = [['docker', 'compose'], ['docker-compose']].find(
    ([command, ...args]) => spawnSync(command, [...args, 'version']).status === 0,
  );
  if (found) return found;
  const cure = 'Install the plugin docker-compose-plugin or the program docker-compose.';
  refuse(
    `${unmade}: Docker is here, but Docker Compose is not`,
    `${cure} Then give the command again.`,
  );
}

function refuse(...paragraphs) {
  for (const text of paragraphs) console.error(wrapped(text));
  process.exit(1);
}

/** Breaks lines between words where a terminal would break them inside of words. */
export function wrapped(text, { isTTY, columns = 80 } = process.stderr) {
  if (!isTTY) return text;
  return text.replaceAll(new RegExp(`(.{1,${columns}})(?: +|$)`, 'gm'), '$1\n').trimEnd();
}

/** Undefined when the image is available, pulled if necessary, else the reason why not. */
export function whyNoImage(image, { pullMs }) {
  if (refusal(['image', 'inspect', image], 10_000) === undefined) return undefined;
  const reason = refusal(['pull', '--quiet', image], pullMs);
  return reason && `the image is not here and cannot be pulled: ${reason}`;
}

/** Removes the containers of test run `run`, and those of ended runs of this machine. */
export function sweepContainers(run) {
  const format = `{{.ID}} {{.Label "${RUN_LABEL}"}}`;
  const args = ['ps', '--all', '--filter', `label=${RUN_LABEL}`, '--format', format];
  const { status, stdout } = spawnSync('docker', args, { encoding: 'utf8', timeout: 10_000 });
  if (status !== 0) return;
  const rows = stdout.split('\n').filter(Boolean);
  const ids = rows
    .map((row) => row.split(' '))
    .filter(([, owner]) => owner === run || isDead(owner))
    .map(([id]) => id);
  if (ids.length === 0) return;
  console.log(`removing ${ids.length} containers that a test run has left behind`);
  spawnSync('docker', ['rm', '--force', '--volumes', ...ids], { timeout: 60_000 });
}

function isDead(owner) {
  const [host, pid] = owner.split(':');
  if (host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}
