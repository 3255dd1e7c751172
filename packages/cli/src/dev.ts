import { EmbeddedRedisError, startCluster, startRedis } from '@piecework/embedded';
import { InvalidOptionError } from '@piecework/protocol';
import type { Command } from 'commander';
import { addFlags, commonFlags, devFlags, readFlags } from './flags.js';
import { onStopSignals } from './stop-signals.js';

interface DevValues {
  json: boolean;
  port?: number;
  dir?: string;
  cluster: boolean;
}

/** A server that stays until it is stopped, and how it is reached. */
interface Serving {
  /** One URL; of a cluster, those of all nodes with commas between them. */
  readonly url: string;
  /** Resolves when it ended, asked or not. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

/** `piecework dev`: a Redis to try things with, which ends with the command. */
export function devCommand(program: Command): void {
  const groups = [commonFlags.filter(({ name }) => name === 'json'), devFlags];
  const command = program
    .command('dev')
    .description('run a Redis, or a Redis Cluster, on this machine until stopped');
  addFlags(command, ...groups).action(async (given: Record<string, unknown>) => {
    const values = readFlags<DevValues>(given, ...groups);
    if (values.cluster && (values.port !== undefined || values.dir !== undefined)) {
      const which = values.port === undefined ? 'dir' : 'port';
      throw new InvalidOptionError(`--${which}`, values[which], 'no --cluster beside it');
    }
    const stopped = new Promise<void>((resolve) => onStopSignals(() => resolve()));
    const { url, ended, stop } = await serve(values);
    if (values.json) {
      console.log(JSON.stringify({ url }));
    } else {
      // The one line on standard output can be read by a shell.
      console.log(`export REDIS_URL=${url}`);
      console.error('Ctrl-C ends it.');
    }
    // The server alone does not keep this process running.
    const stay = setInterval(() => {}, 60_000);
    const log = await Promise.race([stopped, ended]);
    clearInterval(stay);
    await stop();
    if (log !== undefined) {
      throw new EmbeddedRedisError('REDIS_ENDED', `the server ended by itself:\n${log.trim()}`);
    }
  });
}

async function serve({ cluster, port, dir }: DevValues): Promise<Serving> {
  const onStatus = (text: string) => console.error(text);
  if (cluster) {
    const { nodes, ended, stop } = await startCluster({ onStatus });
    const urls = nodes.map(({ host, port: at }) => `redis://${host}:${at}`);
    return { url: urls.join(','), ended, stop };
  }
  return startRedis({
    onStatus,
    ...(port === undefined ? {} : { port }),
    ...(dir === undefined ? {} : { dir, persistence: 'aof' as const }),
  });
}
