import {
  commandsIn,
  idQueueKeys,
  queueKeys,
  requestKeys,
  type ScriptName,
  timedKeys,
} from '@piecework/protocol';
import type { Role } from './roles.js';

/*
 * What each role does on a server: the scripts that it runs, with the commands that they call, and its plain
 * commands. docs/operations.md gives each role a user with exactly these rights; a test compares the page with
 * this file.
 */

/** Of every role that has something open: it ticks the agenda, and records crashes. */
const TICK: readonly ScriptName[] = [
  ...(['tick', 'tend', 'write-back', 'finish', 'unlink-spent'] as const),
  'read-state',
];
const NOTE = ['hmget', 'zadd', 'zremrangebyrank', 'pexpire'];

const TIMED: readonly ScriptName[] = ['timed-put', 'timed-take', 'timed-settle', 'timed-counts'];

export const SCRIPTS: Readonly<Record<Role, readonly ScriptName[]>> = {
  producer: [
    ...TICK,
    ...([
      'submit',
      'intent',
      'create',
      'append',
      'push',
      'renew-producer',
      'seal',
      'schedule-tend',
      'cancel',
    ] as const),
  ],
  worker: [
    ...TICK,
    ...([
      'enter',
      'take',
      'settle',
      'renew',
      'run-alone',
      'pending',
      'cause',
      'hold',
      'schedule-tend',
    ] as const),
    ...(['should-yield', 'push', 'exchange', 'park', 'deregister', 'pause-queue'] as const),
  ],
  notifier: [...TICK, 'inspect', 'pending', 'follow', 'read-results'],
  admin: [
    ...TICK,
    ...([
      'inspect',
      'pending',
      'read-series',
      'cancel',
      'update',
      'drop',
      'redrive',
      'run-again',
    ] as const),
    ...([
      'intent',
      'push',
      'seal',
      'schedule-tend',
      'reopen',
      'pause-queue',
      'resume-queue',
    ] as const),
  ],
  'retry-queue': [...TIMED, 'timed-failures'],
  scheduler: TIMED,
  'id-queue': [
    ...(['id-join', 'id-add', 'id-pull', 'id-resume', 'id-settle'] as const),
    ...(['id-inspect', 'id-drop'] as const),
  ],
};

/** What a client needs to connect, also to a cluster, and to run scripts. */
const CONNECT = [
  ...['info', 'ping', 'client|setname', 'evalsha', 'eval'],
  ...['cluster|slots', 'cluster|info', 'asking', 'readonly'],
];

/** Commands that are sent to nodes of a cluster only. */
export const OF_CLUSTERS: readonly string[] = [
  ...['cluster|slots', 'cluster|info', 'cluster|nodes', 'asking', 'readonly'],
];

export const PLAIN: Readonly<Record<Role, readonly string[]>> = {
  producer: [...NOTE, 'hget', 'zscore', 'set', 'wait', 'waitaof', 'command|info'],
  worker: [
    ...NOTE,
    ...['hget', 'hscan', 'blmpop', 'lmpop', 'client|id', 'client|unblock'],
    'ssubscribe',
  ],
  notifier: [
    ...NOTE,
    ...['hget', 'hgetall', 'zrange', 'zscore', 'hscan', 'exists'],
    ...['ssubscribe', 'sunsubscribe'],
  ],
  admin: [
    ...NOTE,
    ...['hget', 'zscore', 'hvals', 'hscan', 'exists', 'hlen', 'hgetall', 'zrange', 'zcard', 'llen'],
    ...['scan', 'spublish', 'zrem'],
    // Of the doctor.
    ...['zmscore', 'zcount', 'xlen', 'xinfo|groups', 'xinfo|consumers', 'time'],
    // Of what runs.
    ...['config|get', 'cluster|nodes', 'acl|whoami', 'acl|dryrun', 'command|info'],
  ],
  'retry-queue': ['ssubscribe', 'unlink'],
  scheduler: ['ssubscribe', 'unlink'],
  'id-queue': [],
};

const NOTICES =
  'notices at once. Without it callers read the state every sweepMs (15 s), and workers learn of a cancel, a pause and a shorter limit when they renew their leases';

/** What a command is for without which everything else works. Without any other, its roles fail with NO_RIGHT. */
export const OPTIONAL: Readonly<Record<string, string>> = {
  spublish: NOTICES,
  ssubscribe: NOTICES,
  sunsubscribe: 'leaving a channel',
  hrandfield:
    'leases after a clock was set back. Without it those of retry queues and schedulers end by the former clock',
  ping: 'checking that a connection answers',
  'client|setname': 'the names of connections',
  'client|id': 'ending a pop that waits. Without it a worker cuts the connection',
  'client|unblock': 'ending a pop that waits. Without it a worker cuts the connection',
  wait: "durability 'replica'",
  waitaof: "durability 'fsync'",
  'acl|dryrun': 'checking rights (piecework doctor)',
  'acl|whoami': 'checking rights (piecework doctor)',
  'command|info': "checking which commands there are (piecework doctor, durability 'fsync')",
  'config|get': 'checking settings (piecework doctor)',
};

/** Commands that Redis 7.0 has not, where ACL rules that name them are refused: for durability 'fsync' only. */
export const LATER: readonly string[] = ['waitaof'];

/** The commands of a role as ACL rules name them. */
export function commandsOf(role: Role): string[] {
  const inScripts = SCRIPTS[role].flatMap(commandsIn);
  return [...new Set([...CONNECT, ...PLAIN[role], ...inScripts])].sort();
}

/** Which of these roles use a command, and the scripts by which they do. */
export function usersOf(
  command: string,
  roles: readonly Role[],
): { readonly roles: readonly Role[]; readonly scripts: readonly ScriptName[] } {
  const scripts = roles.flatMap((role) => SCRIPTS[role]);
  return {
    roles: roles.filter((role) => commandsOf(role).includes(command)),
    scripts: [...new Set(scripts)].filter((script) => commandsIn(script).includes(command)).sort(),
  };
}

/** Keys and channels, or patterns of them. */
export interface Places {
  readonly keys: readonly string[];
  readonly channels: readonly string[];
}

/** A key of each pattern, and the channels, that a role uses of what is called `name`. */
export function placesOf(role: Role, name: string, id: string): Places {
  if (role === 'id-queue') return { keys: [idQueueKeys(name).state], channels: [] };
  const kind = timedKind(role);
  if (kind) {
    const { due, channel } = timedKeys(kind, name);
    return { keys: [due], channels: [channel] };
  }
  const { id: _, channel, ...ofRequest } = requestKeys(id);
  const { open, control, lists } = queueKeys(name);
  return {
    keys: [open, lists[0] as string, ...Object.values(ofRequest)],
    channels: [channel, control],
  };
}

/** Patterns of what `placesOf` names, as ACL rules have them. */
export function patternsOf(role: Role, name: string): Places {
  const { keys, channels } = placesOf(role, name, '*');
  if (role === 'id-queue') return { keys: [`${keys[0]}*`], channels };
  const kind = timedKind(role);
  if (kind) return { keys: [timedKeys(kind, name).caller('*').replace('caller:', '')], channels };
  const ofRequests = keys.filter((key) => key.endsWith('{*}'));
  return { keys: [`{${name}}:*`, ...ofRequests], channels };
}

function timedKind(role: Role): 'retry' | 'schedule' | undefined {
  if (role === 'retry-queue') return 'retry';
  return role === 'scheduler' ? 'schedule' : undefined;
}
