import { ConnectionError, PieceworkError, ServerError } from '../contract/errors.js';
import { isRedirectedTooOften, messageWithCause } from './ioredis-internals/error-texts.js';
import { missingRight, type Sent } from './missing-right.js';

/** Replies that mean "not now": the same call may be sent again, which every script allows. */
const PASSING = /^(LOADING|BUSY|MISCONF|NOREPLICAS|UNBLOCKED|ERR max number of clients)\b/;
/** The same of a cluster. */
const ON_ITS_WAY = /^(TRYAGAIN|MOVED|ASK)\b/;
const DOWN = /^(CLUSTERDOWN|MASTERDOWN)\b/;

/** The server knows no such user, or the password is another one, as after a change. */
const UNAUTHENTICATED = /^(NOAUTH|WRONGPASS)\b/;

/** The reply to a SELECT of a db that does not exist. */
const NO_DB = /^ERR (DB index is out of range|invalid DB index)/;

/** From the decoder of ioredis. */
const NO_REDIS = /^(Unknown RESP type|Protocol error, got)/;

const CONNECTION =
  /Connection is closed|due to connection close|Socket (connection )?timeout|ECONN|EHOST|ENET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|ENOENT|max retries|Stream isn't writeable|Cluster isn't ready|Cluster is ended|Command timed out|Failed to refresh slots|All .*attempts failed|None of startup nodes/i;

/** What the user should do, for replies that do not say so. */
const CURES: readonly (readonly [said: RegExp, cure: string])[] = [
  [
    /^NOAUTH/,
    'The URL needs a password: redis://:PASSWORD@HOST, or redis://USER:PASSWORD@HOST (piecework dev prints its URL)',
  ],
  [
    /^WRONGPASS/,
    'Correct user and password in the URL; special characters in it need %-encoding (piecework dev prints a new URL at each start; for passwords that change see docs/operations.md#passwords-that-change)',
  ],
  [
    /self.signed certificate|unable to (get|verify)/i,
    '(name its authority with NODE_EXTRA_CA_CERTS=FILE, or in code with tls.ca)',
  ],
  [/unknown command 'sentinel'/, '(a Redis server, and no Sentinel, answers there)'],
];

/** Why a server cannot be reached, in words, by the code of the error. */
const WAYS: readonly (readonly [code: string, why: string])[] = [
  ['ECONNREFUSED', 'nothing listens there; see that Redis runs, and that host and port are right'],
  ['ENOTFOUND', 'no host of this name is known; see that it is spelled right'],
  ['EAI_AGAIN', 'the name server did not answer'],
  ['ENOENT', 'there is no such socket; see that Redis runs, and that the path is right'],
];

function whyUnreachable(message: string): string {
  const why = WAYS.find(([code]) => message.includes(code))?.[1];
  const said = message.replace(/(^|, )(?:connect|getaddrinfo) (?=E)/g, '$1').replace(/\.$/, '');
  return `${said}: ${why ?? 'see that Redis runs and answers'}`;
}

/**
 * Turns an error of ioredis into one of ours. ioredis attaches the command with its arguments to an error; we copy
 * only the message, so that no payload reaches a log. `sent`: the script that was refused, if it was a script.
 */
export function redisError(error: unknown, doing: string, sent?: Sent): PieceworkError {
  if (error instanceof PieceworkError) return error;
  const message = messageWithCause(error);
  if (message.startsWith('OOM')) {
    return new ServerError(
      `${doing}: Redis is full: raise maxmemory, or drop requests and shorten retention`,
      { code: 'FULL', retryable: true },
    );
  }
  if (message.startsWith('READONLY')) {
    return new ServerError(`${doing}: this Redis is a read-only replica: connect to its master`, {
      code: 'READ_ONLY',
      retryable: true,
    });
  }
  if (ON_ITS_WAY.test(message)) {
    return new ServerError(
      `${doing}: ${message}: the hash slot is on its way to another server: see that its move is finished`,
      { code: 'SLOT_MOVES', retryable: true },
    );
  }
  if (DOWN.test(message)) {
    return new ServerError(
      `${doing}: ${message}: no server serves the hash slot: piecework doctor says which, and why`,
      { code: 'CLUSTER_DOWN', retryable: true },
    );
  }
  const right = missingRight(message, sent);
  if (right) return new ServerError(`${doing}: ${right}`, { code: 'NO_RIGHT' });
  if (NO_DB.test(message)) {
    return new ServerError(
      `${doing}: the server has no db of this number: take a smaller one, or raise \`databases\` of the server`,
      { code: 'NO_DB' },
    );
  }
  if (NO_REDIS.test(message)) {
    return new ConnectionError(
      `${doing}: what answers there is not Redis; see that host and port are right`,
    );
  }
  const name = error instanceof Error ? error.name : '';
  if (
    CONNECTION.test(message) ||
    isRedirectedTooOften(error) ||
    name === 'MaxRetriesPerRequestError'
  ) {
    return new ConnectionError(`${doing}: ${whyUnreachable(message)}`);
  }
  const cure = CURES.find(([said]) => said.test(message))?.[1];
  return new ServerError(`${doing}: ${message.trim()}${cure ? ` ${cure}` : ''}`, {
    code: UNAUTHENTICATED.test(message) ? 'PASSWORD' : 'REDIS',
    retryable: PASSING.test(message),
  });
}

/** Whether the error says that a stream or its consumer group does not exist. */
export const lacksStream = (error: unknown): boolean =>
  /^(NOGROUP|ERR no such key)/.test((error as Error).message);

/** Whether a key has another type: a compact request is a string (lua/lib/compact). */
export const isOtherType = (error: unknown): boolean => /^WRONGTYPE/.test((error as Error).message);
