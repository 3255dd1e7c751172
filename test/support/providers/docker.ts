import { hostname } from 'node:os';
import { GenericContainer, getContainerRuntimeClient, Wait } from 'testcontainers';
import { RUN_LABEL } from '../../../scripts/docker-engine.mjs';
import { testImage } from '../mode.js';
import type { RedisProvider } from './provider.js';

// Testcontainers' own sweeper is one more image to pull; scripts/test.mjs sweeps by our label.
process.env['TESTCONTAINERS_RYUK_DISABLED'] ??= 'true';

/** Whose containers these are: the run of scripts/test.mjs, or else the vitest that was called. */
const run = process.env['PIECEWORK_TEST_RUN'] ?? `${hostname()}:${process.ppid}`;

const SETTINGS = [
  ...['--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction'],
  // Who connects comes over the bridge; only the loopback of this machine leads there.
  ...['--protected-mode', 'no', '--enable-debug-command', 'yes', '--shutdown-timeout', '0'],
];

const PORT = 6379;

/** A container of an image of Redis or Valkey that is reached from this machine only. */
class RedisContainer extends GenericContainer {
  readonly #settings: readonly string[];

  constructor(image: string, settings: readonly string[]) {
    super(image);
    this.#settings = settings;
    this.withExposedPorts(PORT)
      .withLabels({ [RUN_LABEL]: run })
      // By the log and not by a command inside: an image may have nothing but its server.
      .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'))
      .withStartupTimeout(60_000);
  }

  /** The image is here by now. */
  protected override async beforeContainerCreated(): Promise<void> {
    const { image, info } = await getContainerRuntimeClient();
    const { Config } = await image.inspect(this.imageName);
    // The image says by its command what its server is called.
    this.withCommand([...(Config.Cmd ?? []), ...this.#settings]);
    if (info.containerRuntime.host !== 'localhost') return;
    for (const bindings of Object.values(this.hostConfig.PortBindings ?? {})) {
      for (const binding of bindings as { HostIp?: string }[]) binding.HostIp = '127.0.0.1';
    }
  }
}

/** Containers by Testcontainers. */
export const docker: RedisProvider = {
  async start(settings = []) {
    const started = await new RedisContainer(testImage, [...SETTINGS, ...settings]).start();
    const host = started.getHost() === 'localhost' ? '127.0.0.1' : started.getHost();
    const { container } = await getContainerRuntimeClient();
    let stopped: Promise<unknown> | undefined;
    return {
      url: `redis://${host}:${started.getMappedPort(PORT)}`,
      async close() {
        // Killed first: a frozen server hears nothing else, and nothing is to be saved.
        stopped ??= container.getById(started.getId()).remove({ force: true, v: true });
        await stopped;
      },
      async kill(signal) {
        await container.getById(started.getId()).kill({ signal });
      },
    };
  },
};
