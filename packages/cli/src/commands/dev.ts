import { InvalidOptionError } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { devFlags } from '../flags/control-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { onStopSignals } from '../terminal/stop-signals.js';

interface DevValues {
  json: boolean;
  port?: number;
  dir?: string;
  cluster: boolean;
}

/** A server or a cluster that runs until it is closed. */
interface Serving {
  /** Its URL; for a cluster, the URLs of all nodes, separated by commas. */
  readonly url: string;
  /** Resolves with the end of its log when it has ended, for whatever reason. */
  readonly ended: Promise<string>;
  close(): Promise<void>;
}

/** `piecework dev`: a Redis for trying things out, which ends with the command. */
export function devCommand(program: Command): void {
  const groups = [commonFlags.filter(({ name }) => name === 'json'), devFlags];
  const command = program
    .command('dev')
    .description('run a Redis, or a Redis Cluster, on this machine until stopped');
  addFlags(command, ...groups).action(async (given: Record<string, unknown>) => {
    const values = readFlags<DevValues>(given, ...groups);
    if (values.cluster && (values.port !== undefined || values.dir !== undefined)) {
      const which = values.port === undefined ? 'dir' : 'port';
      throw new InvalidOptionError(`--${which}`, values[which], 'without --cluster');
    }
    const stopped = new Promise<void>((resolve) => onStopSignals(() => resolve()));
    // Loaded on demand: help and completion load this module, too.
    const embedded = await import('@piecework/embedded');
    const { url, ended, close } = await serve(embedded, values);
    if (values.json) {
      console.log(JSON.stringify({ url }));
    } else {
      // The only line on standard output, so that a shell can evaluate it.
      console.log(`export REDIS_URL=${url}`);
      console.error('Ctrl-C ends it.');
    }
    // The server does not keep this process running.
    const stay = setInterval(() => {}, 60_000);
    const log = await Promise.race([stopped, ended]);
    clearInterval(stay);
    await close();
    if (log !== undefined) {
      const message = `the server has ended by itself:\n${log.trim()}`;
      throw new embedded.EmbeddedRedisError('REDIS_ENDED', message);
    }
  });
}

async function serve(
  { startCluster, startRedis }: typeof import('@piecework/embedded'),
  { cluster, port, dir }: DevValues,
): Promise<Serving> {
  const onStatus = (text: string) => console.error(text);
  if (cluster) {
    const { nodes, ended, close } = await startCluster({ onStatus });
    const urls = nodes.map(({ host, port: at }) => `redis://${host}:${at}`);
    return { url: urls.join(','), ended, close };
  }
  return startRedis({
    onStatus,
    ...(port === undefined ? {} : { port }),
    ...(dir === undefined ? {} : { dir, persistence: 'aof' as const }),
  });
}
