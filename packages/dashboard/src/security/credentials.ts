import { createHash, timingSafeEqual } from 'node:crypto';
import { compare } from 'bcryptjs';

/** Who may sign in: everybody who knows the token, or the users of a file. */
export type Credentials =
  | { readonly token: string }
  | { readonly users: ReadonlyMap<string, string> };

/** A shorter token could be guessed. */
const SHORTEST_TOKEN = 16;

/** @throws TypeError */
export function checkedToken(token: string): string {
  if (token.length < SHORTEST_TOKEN)
    throw new TypeError(
      `the token must have at least ${SHORTEST_TOKEN} characters; make one with: openssl rand -hex 24`,
    );
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new TypeError('the token must consist of visible ASCII characters');
  return token;
}

/** The users of a file of `htpasswd -B`: a line `name:$2y$…` for each. @throws TypeError that names the line */
export function parseUsers(text: string): ReadonlyMap<string, string> {
  const users = new Map<string, string>();
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const [, name, hash] =
      /^([^:\s]{1,64}):(\$2[aby]\$\d\d\$[./A-Za-z0-9]{53})\s*$/.exec(line) ?? [];
    if (name === undefined || hash === undefined)
      throw new TypeError(`line ${i + 1} is not name:hash as written by: htpasswd -B -c FILE NAME`);
    users.set(name, hash);
  }
  if (users.size === 0) throw new TypeError('the file names no user');
  return users;
}

/** A hash that no password has, at this cost: two digits. */
const nobody = (cost: number): string =>
  `$2b$${String(cost).padStart(2, '0')}$6WjqDW6aTI/KXgyoygR3P.3IVyky.Z/mzVdZMOk2ScaOFb0BIr9m.`;
const costOf = (hash: string): number => Number(hash.slice(4, 6));

/**
 * What a password is compared with. The work is the same whatever the name, or the time of an answer would tell which
 * names exist: a hash of cost c takes 2^c rounds, and 2^c + 2^c + 2^(c+1) + … + 2^(n-1) = 2^n, n the highest cost of the
 * file. The first is the hash of the name.
 */
export function compared(users: ReadonlyMap<string, string>, name: string): string[] {
  const most = Math.max(...[...users.values()].map(costOf));
  const first = users.get(name) ?? nobody(most);
  const missing = Array.from({ length: most - costOf(first) }, (_, i) => nobody(costOf(first) + i));
  return [first, ...missing];
}

/** @returns the name for the log; undefined: wrong */
export async function signIn(
  credentials: Credentials,
  name: string,
  password: string,
): Promise<string | undefined> {
  if ('token' in credentials) {
    if (!isSame(credentials.token, password)) return undefined;
    return name === '' ? 'by token' : `${name.slice(0, 64)} (by token)`;
  }
  const { users } = credentials;
  // bcrypt reads 72 bytes; what is longer would be equal to its beginning.
  const fits = Buffer.byteLength(password) <= 72;
  const matches: boolean[] = [];
  for (const hash of compared(users, name))
    matches.push(await compare(password.slice(0, 72), hash));
  return matches[0] && fits && users.has(name) ? name : undefined;
}

function isSame(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}
