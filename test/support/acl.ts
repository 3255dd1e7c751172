import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { ROLES, type Role } from '../../packages/piecework/dist/operate/doctor/servers/roles.js';
import type { RedisAddress } from './flow.js';
import { underAcl } from './mode.js';

/*
 * The ACL users of docs/operations.md: the page is where they are defined, and tests read them there.
 */

export const PASSWORD = 'secret';

const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');

/** The rules of a role's user as the page has them, for one queue ('*': for all). */
export function rulesOf(role: Role, queue: string): string[] {
  const line = new RegExp(`ACL SETUSER piecework-${role} ((?:.*\\\\\\n)*.*)`).exec(page)?.[1];
  if (!line) throw new Error(`docs/operations.md has no user piecework-${role}`);
  return line
    .split(/[\s\\]+/)
    .map((word) => word.replaceAll("'", ''))
    .filter((word) => word !== '')
    .map((rule) => rule.replace('>PASSWORD', `>${PASSWORD}`).replace('{req}', `{${queue}}`));
}

export const userOf = (role: Role): string => `piecework-${role}`;

/** The same address, as this user. */
export function asUser(address: RedisAddress, user: string): RedisAddress {
  if (typeof address === 'string') return address.replace('//', `//${user}:${PASSWORD}@`);
  const redisOptions = { username: user, password: PASSWORD };
  return { ...address, options: { redisOptions } } as RedisAddress;
}

/** Who has the rights of all roles, as an application may that is all of them. */
export const EVERYBODY = 'piecework-everybody';

/** Makes the users on every server; what was denied before is forgotten. */
export async function makeUsers(servers: readonly Redis[], queue: string): Promise<void> {
  await Promise.all(servers.map((server) => server.call('ACL', 'SETUSER', EVERYBODY, 'reset')));
  for (const role of ROLES) {
    const rules = rulesOf(role, queue);
    await Promise.all(
      servers.map((server) => server.call('ACL', 'SETUSER', userOf(role), ...rules)),
    );
    const added = rules.filter((rule) => !/^(reset.*|-@all)$/.test(rule));
    await Promise.all(servers.map((server) => server.call('ACL', 'SETUSER', EVERYBODY, ...added)));
  }
  await Promise.all(servers.map((server) => server.call('ACL', 'LOG', 'RESET')));
}

/**
 * What the users of the page were denied, as `user command`, without what Redis 7.2 and later ask of clients at their
 * start. Users that a test makes itself are its own business.
 */
export async function denied(servers: readonly Redis[]): Promise<string[]> {
  const logs = await Promise.all(servers.map((server) => server.call('ACL', 'LOG', 1_000)));
  return (logs.flat() as unknown[][]).map(recordOf).flatMap((entry) => {
    const user = entry['username'] ?? '';
    if (!user.startsWith('piecework-') || entry['object'] === 'client|setinfo') return [];
    return [`${user}: ${entry['reason']} ${entry['object']} (${entry['context']})`];
  });
}

function recordOf(flat: unknown[]): Record<string, string> {
  const entry: Record<string, string> = {};
  for (let i = 0; i < flat.length; i += 2) entry[String(flat[i])] = String(flat[i + 1]);
  return entry;
}

/** In a run under ACL whoever has the rights of all roles may do this as well, as a rule of ACLs says. */
export async function mayAlso(servers: readonly Redis[], rule: string): Promise<void> {
  if (!underAcl) return;
  await Promise.all(servers.map((server) => server.call('ACL', 'SETUSER', EVERYBODY, rule)));
}

/** In a run under ACL the address as somebody with the rights of all roles; else as it is. */
export async function asEverybody<Address extends RedisAddress>(
  address: Address,
  servers: readonly Redis[],
): Promise<Address> {
  if (!underAcl) return address;
  await makeUsers(servers, '*');
  return asUser(address, EVERYBODY) as Address;
}

/** @throws Error in a run under ACL in which somebody was denied something since the users were made */
export async function nobodyDenied(servers: readonly Redis[]): Promise<void> {
  const refused = underAcl ? await denied(servers) : [];
  if (refused.length > 0) throw new Error(`somebody was denied: ${refused.join('; ')}`);
}
