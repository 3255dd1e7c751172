import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ServeOptions } from '@piecework/dashboard';
import { InvalidOptionError } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { dashboardFlags } from '../flags/dashboard-flags.js';
import { queuesOf } from '../flags/queue-names.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { existingRedis } from '../flags/redis-url.js';
import { defaultLogFormat, type LogFormat } from '../terminal/log-format.js';
import { print, say } from '../terminal/print.js';
import { onStopSignals } from '../terminal/stop-signals.js';
import { openPiecework } from './open-piecework.js';
import { loadPage, servePage } from './serve-page.js';

interface DashboardValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  port: number;
  host: string;
  tokenFile?: string;
  authFile?: string;
  insecure: boolean;
  allowControl: boolean;
  queues?: string;
  retryQueues?: string;
  schedulers?: string;
  idQueues?: string;
  showPayloads: boolean;
  mask?: string;
  hosts?: string;
  trustProxy?: string;
  logLevel: string;
  logFormat?: LogFormat;
}

/** `piecework dashboard`: serves a page that shows queues, until it is stopped. */
export function dashboardCommand(program: Command): void {
  const command = program
    .command('dashboard')
    .description(
      'serve a page that shows queues, requests and workers, live (needs @piecework/dashboard)',
    );
  addFlags(command, commonFlags, dashboardFlags).action(async (given: Record<string, unknown>) => {
    const values = readFlags<DashboardValues>(given, commonFlags, dashboardFlags);
    const page = await loadPage('dashboard');
    const access = await accessOf(values);
    const stopped = new Promise<void>((done) => onStopSignals(() => done()));
    // Says at once that Redis cannot be reached, or is too old.
    await (await openPiecework(values)).close();
    const served = await servePage(page, { ...access, ...(await shownOf(values)) }, '--port');
    if (values.json) print(JSON.stringify({ url: served.url }));
    else {
      print(served.url);
      const may = values.allowControl ? 'look, and change, cancel and drop requests' : 'look';
      const who = access.insecure ? `Anybody on this machine may ${may}. ` : '';
      say(`${who}Ctrl-C ends it.`);
    }
    await stopped;
    await served.close();
  });
}

type Access = Pick<ServeOptions, 'token' | 'users' | 'insecure'>;

/** How visitors are let in. @throws InvalidOptionError: not at all, or in several ways */
async function accessOf(values: DashboardValues): Promise<Access> {
  const { tokenFile, authFile, insecure } = values;
  const token = process.env['PIECEWORK_DASHBOARD_TOKEN'];
  const ways = [tokenFile, authFile, insecure || undefined].filter((one) => one !== undefined);
  if (ways.length > 1)
    throw new InvalidOptionError(
      authFile === undefined ? '--insecure' : '--auth-file',
      authFile ?? true,
      'one of --token-file, --auth-file, --insecure',
    );
  if (tokenFile !== undefined) return { token: (await read('--token-file', tokenFile)).trim() };
  if (authFile !== undefined) return { users: await read('--auth-file', authFile) };
  if (insecure) return { insecure: true };
  if (token) return { token };
  const allowed =
    '--token-file FILE, --auth-file FILE or the environment variable PIECEWORK_DASHBOARD_TOKEN; on your own machine --insecure';
  throw new InvalidOptionError('--token-file', undefined, allowed);
}

async function shownOf(values: DashboardValues): Promise<Omit<ServeOptions, keyof Access>> {
  const { openLog } = await import('@piecework/worker/log');
  const { retryQueues, schedulers, idQueues, mask, logLevel, logFormat } = values;
  const list = (text: string | undefined) => text?.split(',') ?? [];
  return {
    redis: existingRedis(values.redis),
    queues: queuesOf(values),
    beside: {
      ...{ retryQueues: list(retryQueues), schedulers: list(schedulers) },
      idQueues: list(idQueues),
    },
    ...{ port: values.port, host: values.host },
    ...{ hosts: list(values.hosts), trustProxy: list(values.trustProxy) },
    ...{ allowControl: values.allowControl, showPayloads: values.showPayloads },
    ...(mask === undefined ? {} : { mask: await maskOf(mask) }),
    logger: openLog(logLevel, logFormat ?? defaultLogFormat()),
  };
}

async function maskOf(path: string): Promise<NonNullable<ServeOptions['mask']>> {
  const module = (await import(pathToFileURL(resolve(path)).href).catch((error: Error) => {
    throw new InvalidOptionError('--mask', path, `a module that can be loaded (${error.message})`);
  })) as { default?: unknown };
  if (typeof module.default !== 'function')
    throw new InvalidOptionError('--mask', path, 'a module whose default export is a function');
  return module.default as NonNullable<ServeOptions['mask']>;
}

async function read(named: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new InvalidOptionError(
      named,
      path,
      `a file that can be read (${(error as Error).message})`,
    );
  }
}
