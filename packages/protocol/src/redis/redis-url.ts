import type { RedisOptions } from 'ioredis';

/*
 * Where Redis is, as one text: `redis://`, `rediss://` (TLS), `unix://` or a socket path; the URLs of some
 * nodes of a cluster with commas between them, which share scheme, user and password; or the Sentinels of a
 * group of servers:
 *
 *   redis-sentinel://[user:password@]host[:26379][,host[:26379]…]/NAME[/db][?sentinelPassword=…]
 *
 * (`valkey` may take the place of `redis` in each scheme; `rediss-sentinel://`: TLS to Sentinels and servers.) User, password and db are those of the servers; the
 * Sentinels' own are the query parameters `sentinelUsername` and `sentinelPassword`.
 *
 * The db number follows the host, or is the query parameter `db`; for a socket only the latter.
 */

const SENTINEL_PORT = 26_379;
const SENTINEL =
  /^(rediss?)-sentinel:\/\/(?:(\S*)@)?([^/?@\s]+)\/([^/?\s]+)(?:\/(\d+))?(?:\?(\S*))?$/;
const SENTINEL_HOST = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/;
const OF_SENTINELS = ['sentinelUsername', 'sentinelPassword'];

/** Whether a text is one of the forms that say where Redis is. */
export function isRedisUrl(text: string): boolean {
  const url = asRedisUrl(text);
  return hasForm(url) && wrongDb(url) === undefined;
}

/** The same with `redis` for `valkey` in each scheme. Everything else here knows only that. */
export const asRedisUrl = (text: string): string =>
  text.replace(/(^|,)valkey(?=s?(?:-sentinel)?:\/\/)/g, '$1redis');

function hasForm(text: string): boolean {
  // With a password it is a URL without its scheme: its path would be in each error of the connection.
  if (/^(unix:\/)?\//.test(text)) return /^(unix:\/\/)?\/(?!\/|.*:.*@)\S+$/.test(text);
  if (namesSentinels(text)) return sentinelsOf(text) !== undefined;
  return nodeUrls(text).every((url) => /^rediss?:\/\/\S+$/.test(url) && URL.canParse(url));
}

/** The db in a text, if it is not a valid number of one; undefined when it is valid or absent. */
export function wrongDb(text: string): string | undefined {
  if (namesSentinels(text)) return undefined;
  const urls = nodeUrls(text);
  const fits = urls.length > 1 ? isDbOfCluster : isDb;
  return urls.map(dbOf).find((db) => db !== undefined && !fits(db));
}

/** Whether a URL of a server has an invalid port. */
export function hasWrongPort(text: string): boolean {
  if (namesSentinels(text)) return false;
  return nodeUrls(text).some((url) => {
    const port = /^rediss?:\/\/(?:\S*@)?[^/?@\s]*:([^/?@:\]\s]+)(?![^/?]|\S*@)/.exec(url)?.[1];
    return port !== undefined && !(/^\d+$/.test(port) && Number(port) <= 65_535);
  });
}

/** Whether user or password of a URL have a percent sign that begins no valid encoding. */
export function hasWrongEscape(text: string): boolean {
  if (namesSentinels(text)) return false;
  return nodeUrls(text).some((url) => {
    if (!/^rediss?:/.test(url) || !URL.canParse(url)) return false;
    const { username, password } = new URL(url);
    try {
      decodeURIComponent(`${username}:${password}`);
      return false;
    } catch {
      return true;
    }
  });
}

/**
 * Whether URLs of a cluster say what would be ignored: another scheme, user or password than the first, or options. A
 * later URL may leave user and password out.
 */
export function disagree(text: string): boolean {
  if (namesSentinels(text)) return false;
  const all = nodeUrls(text).filter((url) => URL.canParse(url));
  const [first, ...others] = all.map((url) => new URL(url));
  if (first === undefined || others.length === 0) return false;
  const signIn = ({ username, password }: URL) => decodeURIComponent(`${username}:${password}`);
  return (
    [first, ...others].some(({ searchParams }) =>
      [...searchParams.keys()].some((name) => name !== 'db'),
    ) ||
    others.some((url) => url.protocol !== first.protocol) ||
    others.some((url) => ![':', signIn(first)].includes(signIn(url)))
  );
}

/** Whether any of the URLs has a user or a password. */
export const hasSignIn = (text: string): boolean =>
  nodeUrls(text).some((url) => /^\w+(?:-sentinel)?:\/\/[^/?]*@/.test(url));

/** The db of a URL, as ioredis reads it: the path takes precedence over the query. */
function dbOf(url: string): string | undefined {
  const named = new URLSearchParams(url.split('?')[1]).get('db') ?? undefined;
  if (!/^rediss?:/.test(url) || !URL.canParse(url)) return named;
  return new URL(url).pathname.slice(1) || named;
}

/** Whether this is a valid number of a db: a whole number from 0 on, as a number or a text. */
export const isDb = (db: unknown): boolean =>
  typeof db === 'string'
    ? /^\d{1,9}\/?$/.test(db)
    : Number.isSafeInteger(db) && (db as number) >= 0;

/** A cluster has db 0 only. */
const isDbOfCluster = (db: string): boolean => /^0\/?$/.test(db);

/** The URLs of cluster nodes; one for a single server. A password may contain a comma. */
export function nodeUrls(text: string): string[] {
  return text.split(/,(?=rediss?:\/\/)/);
}

export const namesSentinels = (text: string): boolean => /^rediss?-sentinel:/.test(text);

/** A URL of Sentinels as ioredis options; undefined when it is none. */
export function sentinelsOf(text: string): RedisOptions | undefined {
  const [, scheme, userInfo = '', hosts = '', name = '', db, query = ''] =
    SENTINEL.exec(text) ?? [];
  if (!scheme) return undefined;
  const sentinels = hosts.split(',').map((host) => {
    const [all, six, plain, port] = SENTINEL_HOST.exec(host) ?? [];
    return all
      ? { host: (six ?? plain) as string, port: Number(port ?? SENTINEL_PORT) }
      : undefined;
  });
  const own = new URLSearchParams(query);
  if ([...own.keys()].some((key) => !OF_SENTINELS.includes(key))) return undefined;
  if (sentinels.some((one) => !one || one.port < 1 || one.port > 65_535)) return undefined;
  try {
    const [user = '', ...password] = userInfo.split(':');
    const secret = decodeURIComponent(password.join(':'));
    return {
      sentinels: sentinels as { host: string; port: number }[],
      name: decodeURIComponent(name),
      ...(db ? { db: Number(db) } : {}),
      ...(user ? { username: decodeURIComponent(user) } : {}),
      ...(secret ? { password: secret } : {}),
      ...Object.fromEntries(own),
      ...(scheme === 'rediss' ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
    };
  } catch {
    // A percent sign that begins no valid encoding.
    return undefined;
  }
}
