import { NAME, option } from '@piecework/protocol/contract';
import { custom, type Flag, flag, isText } from './flag.js';
import { each, queuesFlag } from './queue-names.js';
import { listenFlags, logFlags } from './server-flags.js';

const NAMES = 'names with commas between them';
const HOST = /^[A-Za-z0-9_.-]{1,253}$/;
const file = custom(isText, 'the path of a file');

/** Flags of `dashboard`. */
export const dashboardFlags: readonly Flag[] = [
  ...listenFlags(4_000),
  flag(
    '--token-file <file>',
    'a file with a token: the password of everybody; or put it into PIECEWORK_DASHBOARD_TOKEN',
    file,
  ),
  flag('--auth-file <file>', 'users and passwords, as written by htpasswd -B', file),
  flag(
    '--insecure',
    'nobody signs in; only for 127.0.0.1 and localhost',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--allow-control',
    'visitors may change, cancel and drop requests, and pause the queue',
    option.boolean(false),
    'switch',
  ),
  queuesFlag('show'),
  flag('--retry-queues <list>', 'also show these RetryQueues', custom(each(NAME), NAMES)),
  flag('--schedulers <list>', 'also show these Schedulers', custom(each(NAME), NAMES)),
  flag('--id-queues <list>', 'also show these IdQueues', custom(each(NAME), NAMES)),
  flag(
    '--show-payloads',
    'payloads and results may be shown, behind a click; without it they never leave the command',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--mask <file>',
    'a module whose default export (value, about) => value replaces payloads, results, metadata and errors',
    file,
  ),
  flag(
    '--hosts <list>',
    'names by which visitors reach it, besides IP addresses and localhost; others are refused',
    custom(each(HOST), NAMES),
  ),
  flag(
    '--trust-proxy <list>',
    'addresses of the proxies in front, as 10.0.0.0/8: their X-Forwarded-For and X-Forwarded-Host are believed',
    custom(isText, 'addresses with commas between them'),
  ),
  ...logFlags,
];
