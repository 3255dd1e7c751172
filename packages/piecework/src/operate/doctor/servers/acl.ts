import { redisError } from '@piecework/protocol';
import type { Redis } from 'ioredis';
import { error, type Finding, ok, warning } from '../finding.js';
import { commandsOf, LATER, OPTIONAL, patternsOf, placesOf } from './rights.js';
import type { Role } from './roles.js';
import type { Server } from './servers.js';

/**
 * The ACL user of each role, as `{ worker: 'pw-worker' }`. The rights of retry queue, scheduler and id queue are
 * checked for the one that has the name of the queue.
 */
export type Users = Readonly<Partial<Record<Role, string>>>;

/** Operands for ACL DRYRUN: the server checks their number and the keys ('k'), and executes nothing. */
const OPERANDS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['time', 'asking', 'readonly', 'ping', 'info'].map((name) => [name, ''])),
  ...Object.fromEntries(
    ['cluster|slots', 'cluster|info', 'cluster|nodes'].map((name) => [name, '']),
  ),
  ...Object.fromEntries(['acl|whoami', 'client|id'].map((name) => [name, ''])),
  ...Object.fromEntries(
    ['get', 'hgetall', 'hkeys', 'hlen', 'hvals', 'llen', 'persist', 'type', 'xlen', 'zcard'].map(
      (name) => [name, 'k'],
    ),
  ),
  ...Object.fromEntries(
    ['hget', 'hexists', 'lindex', 'zscore', 'pexpire', 'spublish'].map((name) => [name, 'k x']),
  ),
  'acl|dryrun': 'user get k',
  blmpop: '1 1 k LEFT',
  'client|setname': 'x',
  'client|unblock': '1',
  'command|info': 'get',
  'config|get': 'save',
  eval: 'return 1 k',
  evalsha: '0000000000000000000000000000000000000000 1 k',
  linsert: 'k BEFORE x y',
  lmpop: '1 k LEFT',
  scan: '0',
  ssubscribe: 'k',
  sunsubscribe: 'k',
  wait: '1 1',
  waitaof: '1 1 1',
  xadd: 'k * f v',
  xclaim: 'k g c 0 0-1',
  'xgroup|create': 'k g 0',
  'xgroup|delconsumer': 'k g c',
  'xgroup|destroy': 'k g',
  'xgroup|setid': 'k g 0',
  'xinfo|consumers': 'k g',
  'xinfo|groups': 'k',
  'xinfo|stream': 'k',
  xreadgroup: 'GROUP g c STREAMS k >',
};

/** How the server refuses a call that a user may not make. */
const NO_COMMAND = /no permissions to run/;
const NO_PLACE = /no permissions to access/;

/**
 * Asks each server whether the user of a role may use every command, key and channel of the role. Without users:
 * whether the user of this connection may do what an admin does.
 */
export async function checkAcl(
  servers: readonly Server[],
  queue: string,
  users: Users,
): Promise<Finding[]> {
  const findings = await Promise.all(
    servers.map(async ({ name, client }) => {
      const ask = new Rights(client);
      try {
        const given = Object.entries(users) as [Role, string][];
        const asked: [Role, string][] = given.length > 0 ? given : [['admin', await ask.whoAmI()]];
        return await Promise.all(
          asked.map(async ([role, user]) =>
            finding(name, role, user, await ask.missing(user, queue, role)),
          ),
        );
      } catch (thrown) {
        const why = redisError(thrown, 'ask').message;
        const what = `${name}: the rights could not be checked: ${why}`;
        const advice =
          'run this as a user with +acl|whoami and +acl|dryrun, if the server has them';
        return [warning('acl', what, advice)];
      }
    }),
  );
  return findings.flat();
}

const a = (role: Role) => (/^[aeiou]/.test(role) ? `an ${role}` : `a ${role}`);

function finding(
  name: string,
  role: Role,
  user: string,
  missing: readonly string[] | 'no such user',
): Finding {
  if (missing === 'no such user') {
    const what = `${name}: there is no ACL user ${user}`;
    return error('acl', what, 'create it on every server, as docs/operations.md shows');
  }
  const purposes = missing.map((right) => OPTIONAL[right.slice(1)]);
  if (purposes.every((purpose) => purpose !== undefined)) {
    const but = missing.map((right, i) => `${right} (${purposes[i]})`).join(', ');
    const what = `${name}: user ${user} may do all that ${a(role)} does`;
    if (missing.every((right) => LATER.includes(right.slice(1))))
      return ok('acl', but === '' ? what : `${what}, but for ${but}`);
    return warning('acl', `${what}, but for ${but}`, `ACL SETUSER ${user} ${missing.join(' ')}`);
  }
  const what = `${name}: user ${user} lacks rights that ${a(role)} needs: ${missing.join(' ')}`;
  return error('acl', what, `ACL SETUSER ${user} ${missing.join(' ')}, on every server`);
}

class Rights {
  readonly #client: Redis;

  constructor(client: Redis) {
    this.#client = client;
  }

  async whoAmI(): Promise<string> {
    return String(await this.#client.call('ACL', 'WHOAMI'));
  }

  /** The missing rights, as ACL rules that grant them. */
  async missing(user: string, queue: string, role: Role): Promise<string[] | 'no such user'> {
    const { keys, channels } = placesOf(role, queue, 'doctor');
    const patterns = patternsOf(role, queue);
    const missing = new Set<string>();
    try {
      for (const command of commandsOf(role)) {
        const operands = (OPERANDS[command] ?? 'k x y').split(' ').filter((word) => word !== '');
        const words = operands.map((word) => (word === 'k' ? (keys[0] as string) : word));
        const said = await this.#dryRun(user, [...command.split('|'), ...words]);
        if (NO_COMMAND.test(said)) missing.add(`+${command}`);
      }
      for (const key of keys) {
        // A write: a pattern for reading alone does not allow it.
        const said = await this.#dryRun(user, ['hset', key, 'f', 'v']);
        if (NO_PLACE.test(said)) missing.add(`~${patternOf(patterns.keys, key)}`);
      }
      for (const channel of channels) {
        const said = await this.#dryRun(user, ['spublish', channel, 'x']);
        if (NO_PLACE.test(said)) missing.add(`&${patternOf(patterns.channels, channel)}`);
      }
    } catch (thrown) {
      if (/User .* not found/.test((thrown as Error).message)) return 'no such user';
      throw thrown;
    }
    return [...missing];
  }

  async #dryRun(user: string, command: readonly string[]): Promise<string> {
    try {
      return String(await this.#client.call('ACL', 'DRYRUN', user, ...command));
    } catch (thrown) {
      // No right is needed to a command that this server does not have: the check of commands names it.
      if (/^ERR Command .* not found/.test((thrown as Error).message)) return 'OK';
      throw thrown;
    }
  }
}

/** The pattern, with one '*' each, that covers a key or channel. */
function patternOf(patterns: readonly string[], text: string): string {
  const covers = (pattern: string) => {
    const [before = '', after = ''] = pattern.split('*');
    return text.startsWith(before) && text.endsWith(after);
  };
  return patterns.find(covers) ?? text;
}
