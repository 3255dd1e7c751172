import { randomBytes } from 'node:crypto';
import type { Machine } from './machine.js';
import { findOnPath, runCommand } from './run-command.js';
import type { ServerProgram } from './server-program.js';

/** The label of all containers that are started here, so that they can be listed. */
const LABEL = 'piecework.embedded';

/** A container of `redis:7` (or PIECEWORK_REDIS_IMAGE), if Docker is installed and answers. */
export async function dockerServer(
  machine: Machine,
  onStatus: (text: string) => void,
): Promise<ServerProgram | undefined> {
  const { env } = machine;
  const docker = await findOnPath('docker', env);
  if (docker === undefined) return undefined;
  if (!(await runCommand(docker, ['version'], { env, timeoutMs: 20_000 })).ok) {
    onStatus('docker is installed, but its daemon does not answer');
    return undefined;
  }
  const image = env['PIECEWORK_REDIS_IMAGE'] || 'redis:7';
  if (!(await runCommand(docker, ['image', 'inspect', image], { env })).ok) {
    onStatus(`pulling the image ${image}`);
    const pull = await runCommand(docker, ['pull', '--quiet', image], { env });
    if (!pull.ok) {
      onStatus(`the image ${image} cannot be pulled: ${pull.stderr.trim()}`);
      return undefined;
    }
  }
  return containerServer(docker, image, await commandOf(image, docker, env));
}

/** The default command of an image, such as `['valkey-server']`, to which settings are added. */
async function commandOf(
  image: string,
  docker: string,
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const inspect = ['image', 'inspect', '--format', '{{json .Config.Cmd}}', image];
  const { ok, stdout } = await runCommand(docker, inspect, { env });
  return (ok && (JSON.parse(stdout || 'null') as string[] | null)) || ['redis-server'];
}

/** Whether a container runs. A container whose port is taken exists, but never runs. */
export async function containerRuns(docker: string, container: string): Promise<boolean> {
  const inspect = ['inspect', '--format', '{{.State.Running}}', container];
  const { stdout } = await runCommand(docker, inspect, { env: process.env });
  return stdout.trim() === 'true';
}

function containerServer(
  docker: string,
  image: string,
  imageCommand: readonly string[],
): ServerProgram {
  return {
    origin: 'docker',
    title: `docker image ${image}`,
    command({ dir, port, settings }) {
      const container = `piecework-redis-${process.pid}-${randomBytes(4).toString('hex')}`;
      const run = ['run', '--interactive', '--rm', '--name', container, '--label', LABEL];
      const published = ['--publish', `127.0.0.1:${port}:6379`, '--volume', `${dir}:/data`];
      // Runs as the caller, who can then read and remove its files in `dir`.
      const user = process.getuid ? ['--user', `${process.getuid()}:${process.getgid?.()}`] : [];
      // Inside, the server has to accept connections from the bridge; from outside, only loopback reaches it.
      const inside = ['--bind', '0.0.0.0', '--protected-mode', 'no', '--dir', '/data'];
      // In place of the image's entrypoint: those of Redis 8 add arguments before or after ours, and the server reads its
      // standard input only if `-` is the first or the last one.
      const shell = ['--entrypoint', 'sh', image, '-c', 'umask 077 && exec "$@"', 'sh'];
      return {
        file: docker,
        args: [
          ...run,
          ...published,
          ...user,
          ...shell,
          ...imageCommand,
          ...settings,
          ...inside,
          '-',
        ],
        env: {},
        container,
      };
    },
  };
}
