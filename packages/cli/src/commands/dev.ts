import { DEV_SERVER, InvalidOptionError } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import { nanoid } from 'nanoid';
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
  /** Its URL for what ends with it. */
  readonly ownUrl?: string;
  /** Rejects when it has ended by itself. */
  readonly lost: Promise<never>;
  close(): Promise<void>;
}

/** The dashboard, and the example that it shows. */
interface Shown {
  /** Where the page is. */
  readonly url: string;
  /** What its visitors sign in with. */
  readonly password: string;
  /** What the example is, for people. */
  readonly about: string;
  /** Rejects when the example has ended by itself. */
  readonly lost: Promise<never>;
  /** Ends the example at once; `close` waits for that. */
  kill(): void;
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
    // Loaded on demand: help and completion load this module, too.
    const { loadPage } = await import('./serve-page.js');
    const page = values.dashboard ? await loadPage('dev --dashboard') : undefined;
    const stopping = new AbortController();
    const { signal } = stopping;
    const stopped = new Promise<void>((resolve) =>
      signal.addEventListener('abort', () => resolve()),
    );
    onStopSignals(() => stopping.abort());
    const embedded = await import('@piecework/embedded');
    const { url, ownUrl = url, lost, close } = await serve(embedded, values);
    // The server does not keep this process running.
    const stay = setInterval(() => {}, 60_000);
    let shown: Shown | undefined;
    // Also while the example starts.
    lost.catch(() => stopping.abort());
    try {
      shown = page && (await show(page, ownUrl, values, signal));
      await announce(values, url, shown);
      await Promise.race([lost, stopped, ...(shown ? [shown.lost] : [])]);
    } catch (error) {
      shown?.kill();
      throw error;
    } finally {
      clearInterval(stay);
      // While it closes, its calls still find the server.
      await shown?.close();
      await close();
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

const TITLE = ['--proc-title-template', `{title} {listen-addr} {server-mode} ${DEV_SERVER}`];

async function serve(
  { startCluster, startRedis }: typeof import('@piecework/embedded'),
  { cluster, port, dir }: DevValues,
): Promise<Serving> {
  if (cluster) {
    say('Not safe beside other users of this machine: any of them can join this cluster,');
    say('and then receives its password and its data.');
    return startCluster({ onStatus: say, args: TITLE });
  }
  return startRedis({
    onStatus: say,
    args: TITLE,
    ...(port === undefined ? {} : { port }),
    ...(dir === undefined ? {} : { dir, persistence: 'aof' as const }),
  });
}

/** The page first: a port that is taken should be said before processes are started. */
async function show(
  dashboard: typeof import('@piecework/dashboard'),
  redis: string,
  { dashboardPort = 4_000 }: DevValues,
  signal: AbortSignal,
): Promise<Shown> {
  const { servePage } = await import('./serve-page.js');
  const { LivingExample } = await import('../example/living-example.js');
  // Other users of this machine reach its port, too.
  const password = nanoid(24);
  const page = await servePage(
    dashboard,
    {
      ...{ redis, queues: [{ name: QUEUE }], port: dashboardPort },
      ...{ token: password, allowControl: true, showPayloads: true },
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
    const kill = () => example.kill();
    return { url: page.url, password, about: LivingExample.about, lost: example.lost, kill, close };
  } catch (error) {
    await page.close();
    throw error;
  }
}

async function announce({ json }: DevValues, url: string, shown: Shown | undefined): Promise<void> {
  if (json) {
    const page = shown ? { dashboard: shown.url, dashboardPassword: shown.password } : {};
    print(JSON.stringify({ url, ...page }));
    return;
  }
  // The only line on standard output, so that a shell can evaluate it.
  print(`export REDIS_URL=${url}`);
  const lines = shown
    ? [
        `dashboard: ${shown.url} (any name, password ${shown.password})`,
        `example: ${shown.about}`,
        'In another terminal, after that export: piecework top',
        'Ctrl-C ends all of it and removes its data.',
      ]
    : [
        'With --dashboard it also serves a page, and an example to look at.',
        'Paste that line into the terminals that use this Redis. Ctrl-C ends it.',
      ];
  const { columnsOf, wrapped } = await import('../terminal/table.js');
  for (const line of lines)
    for (const part of wrapped(line, 2, columnsOf(process.stderr)).split('\n')) say(part);
}
