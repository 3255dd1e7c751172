import { InvalidOptionError } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { devFlags } from '../flags/control-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { print, say } from '../terminal/print.js';
import { onStopSignals } from '../terminal/stop-signals.js';

interface DevValues {
  json: boolean;
  port?: number;
  dir?: string;
  cluster: boolean;
  dashboard: boolean;
  dashboardPort?: number;
}

/** A server or a cluster that runs until it is closed. */
interface Serving {
  /** Its URL; for a cluster, the URLs of all nodes, separated by commas. */
  readonly url: string;
  /** Resolves with the end of its log when it has ended, for whatever reason. */
  readonly ended: Promise<string>;
  close(): Promise<void>;
}

/** The dashboard, and the example that it shows. */
interface Shown {
  /** Where the page is. */
  readonly url: string;
  /** What the example is, for people. */
  readonly about: string;
  /** Rejects when the example has ended by itself. */
  readonly lost: Promise<never>;
  close(): Promise<void>;
}

/** The queue of programs that name none: the page shows what they do as well. */
const QUEUE = 'req';

/** `piecework dev`: a Redis for trying things out, which ends with the command; with `--dashboard` also a page. */
export function devCommand(program: Command): void {
  const groups = [commonFlags.filter(({ name }) => name === 'json'), devFlags];
  const command = program
    .command('dev')
    .description('run a Redis, or a Redis Cluster, on this machine until stopped');
  addFlags(command, ...groups).action(async (given: Record<string, unknown>) => {
    const values = readFlags<DevValues>(given, ...groups);
    check(values);
    const stopping = new AbortController();
    const { signal } = stopping;
    const stopped = new Promise<void>((resolve) =>
      signal.addEventListener('abort', () => resolve()),
    );
    onStopSignals(() => stopping.abort());
    // Loaded on demand: help and completion load this module, too.
    const embedded = await import('@piecework/embedded');
    const { url, ended, close } = await serve(embedded, values);
    // The server does not keep this process running.
    const stay = setInterval(() => {}, 60_000);
    let shown: Shown | undefined;
    let log: string | undefined;
    try {
      shown = values.dashboard ? await show(url, values, signal) : undefined;
      await announce(values, url, shown);
      const lost = shown ? [shown.lost] : [];
      log = (await Promise.race([stopped, ended, ...lost])) ?? undefined;
    } finally {
      clearInterval(stay);
      // While it closes, its calls still find the server.
      await shown?.close();
      await close();
    }
    if (log !== undefined) {
      const message = `the server has ended by itself:\n${log.trim()}`;
      throw new embedded.EmbeddedRedisError('REDIS_ENDED', message);
    }
  });
}

/** @throws InvalidOptionError */
function check({ cluster, port, dir, dashboard, dashboardPort }: DevValues): void {
  if (cluster && (port !== undefined || dir !== undefined)) {
    const [which, value] = port === undefined ? ['dir', dir] : ['port', port];
    throw new InvalidOptionError(`--${which}`, value, 'without --cluster');
  }
  // The example would be written into data that stays.
  if (dashboard && dir !== undefined)
    throw new InvalidOptionError(
      '--dir',
      dir,
      'without --dashboard, whose example submits requests',
    );
  if (!dashboard && dashboardPort !== undefined)
    throw new InvalidOptionError('--dashboard-port', dashboardPort, 'with --dashboard');
}

async function serve(
  { startCluster, startRedis }: typeof import('@piecework/embedded'),
  { cluster, port, dir }: DevValues,
): Promise<Serving> {
  if (cluster) {
    const { nodes, ended, close } = await startCluster({ onStatus: say });
    const urls = nodes.map(({ host, port: at }) => `redis://${host}:${at}`);
    return { url: urls.join(','), ended, close };
  }
  return startRedis({
    onStatus: say,
    ...(port === undefined ? {} : { port }),
    ...(dir === undefined ? {} : { dir, persistence: 'aof' as const }),
  });
}

/** The page first: a port that is taken should be said before processes are started. */
async function show(
  redis: string,
  { dashboardPort = 4_000 }: DevValues,
  signal: AbortSignal,
): Promise<Shown> {
  const { servePage } = await import('./serve-page.js');
  const { LivingExample } = await import('../example/living-example.js');
  const page = await servePage(
    {
      ...{ redis, queues: [{ name: QUEUE }], port: dashboardPort },
      // Only from this machine, and its data ends with the command.
      ...{ insecure: true, allowControl: true, showPayloads: true },
    },
    '--dashboard-port',
  );
  try {
    say('starting the example …');
    const example = await LivingExample.start(redis, QUEUE, say, signal);
    const close = async () => {
      await example.close();
      await page.close();
    };
    return { url: page.url, about: LivingExample.about, lost: example.lost, close };
  } catch (error) {
    await page.close();
    throw error;
  }
}

async function announce({ json }: DevValues, url: string, shown: Shown | undefined): Promise<void> {
  if (json) {
    print(JSON.stringify({ url, ...(shown ? { dashboard: shown.url } : {}) }));
    return;
  }
  // The only line on standard output, so that a shell can evaluate it.
  print(`export REDIS_URL=${url}`);
  const lines = shown
    ? [
        `dashboard: ${shown.url} (only from this machine)`,
        `example: ${shown.about}`,
        'In another terminal, after that export: piecework top',
        'Ctrl-C ends all of it and removes its data.',
      ]
    : ['Ctrl-C ends it.'];
  const { columnsOf, wrapped } = await import('../terminal/table.js');
  for (const line of lines)
    for (const part of wrapped(line, 2, columnsOf(process.stderr)).split('\n')) say(part);
}
