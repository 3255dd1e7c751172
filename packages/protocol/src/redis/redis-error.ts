import { ConnectionError, PieceworkError, ServerError } from '../contract/errors.js';
import { missingRight, type Sent } from './missing-right.js';

/** What ioredis says that has been redirected too often; the last of it may be any reply, as NOSCRIPT. */
const EXHAUSTED = /^Too many Cluster redirections/;

/** Replies that mean "not now": the same call may be sent again, and every script bears it. */
const PASSING = /^(LOADING|BUSY|MISCONF|NOREPLICAS|UNBLOCKED|ERR max number of clients)\b/;
/** The same of a cluster. */
const ON_ITS_WAY = /^(TRYAGAIN|MOVED|ASK)\b/;
const DOWN = /^(CLUSTERDOWN|MASTERDOWN)\b/;

/** To who selects a db that is not there. */
const NO_DB = /^ERR (DB index is out of range|invalid DB index)/;

/** From the decoder of ioredis. */
const NO_REDIS = /^(Unknown RESP type|Protocol error, got)/;

const CONNECTION =
  /Connection is closed|due to connection close|Socket timeout|ECONN|EHOST|ENET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|ENOENT|max retries|Stream isn't writeable|Cluster isn't ready|Cluster is ended|Command timed out|Failed to refresh slots|All .*attempts failed|None of startup nodes/i;

/** What a reply does not say of itself: what to do. */
const CURES: readonly (readonly [said: RegExp, cure: string])[] = [
  [/^NOAUTH/, 'The URL needs a password: redis://:PASSWORD@HOST, or redis://USER:PASSWORD@HOST'],
  [/^WRONGPASS/, 'Correct user and password in the URL; special characters in it need %-encoding'],
  [
    /self.signed certificate|unable to (get|verify)/i,
    '(name its authority with NODE_EXTRA_CA_CERTS=FILE, or in code with tls.ca)',
  ],
  [/unknown command 'sentinel'/, '(a Redis server, and no Sentinel, answers there)'],
];

/** What is wrong with the way to a server, in words. */
const WAYS: readonly (readonly [code: string, why: string])[] = [
  ['ECONNREFUSED', 'nothing listens there; see that Redis runs, and that host and port are right'],
  ['ENOTFOUND', 'no host of this name is known; see that it is spelled right'],
  ['EAI_AGAIN', 'the name server did not answer'],
  ['ENOENT', 'there is no such socket; see that Redis runs, and that the path is right'],
];

function whyUnreachable(message: string): string {
  const why = WAYS.find(([code]) => message.includes(code))?.[1];
  const said = message.replace(/^(connect|getaddrinfo) (?=E)/, '');
  return why ? `${said}: ${why}` : said;
}

/** A cluster's errors carry that of the last node beside their own. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // ioredis has sent it some times, and gives up with what it was answered last.
  const last = /^Too many Cluster redirections\. Last error: (?:\w*Error: )?(.*)$/s.exec(
    error.message,
  );
  if (last?.[1]) return last[1];
  const { lastNodeError } = error as { lastNodeError?: { message?: string } };
  return lastNodeError?.message ? `${error.message} ${lastNodeError.message}` : error.message;
}

/**
 * Turns what ioredis threw into one of our errors. ioredis attaches the command with its arguments
 * to an error; only its message is taken over, so that no payload reaches a log. `sent`: the script that was
 * refused, if it was one.
 */
export function redisError(error: unknown, doing: string, sent?: Sent): PieceworkError {
  if (error instanceof PieceworkError) return error;
  const message = messageOf(error);
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
  if (right) {
    return new ServerError(
      `${doing}: ${right} (docs/operations.md lists the rights of each role; piecework doctor --users checks them)`,
      { code: 'NO_RIGHT' },
    );
  }
  if (NO_DB.test(message)) {
    return new ServerError(
      `${doing}: the server has no db of this number: take a smaller one, or raise \`databases\` of the server`,
      { code: 'NO_DB' },
    );
  }
  if (NO_REDIS.test(message)) {
    return new ConnectionError(
      `${doing}: what answers there is no Redis; see that host and port are right`,
    );
  }
  const name = error instanceof Error ? error.name : '';
  const exhausted = error instanceof Error && EXHAUSTED.test(error.message);
  if (CONNECTION.test(message) || exhausted || name === 'MaxRetriesPerRequestError') {
    return new ConnectionError(`${doing}: ${whyUnreachable(message)}`);
  }
  const cure = CURES.find(([said]) => said.test(message))?.[1];
  return new ServerError(`${doing}: ${message.trim()}${cure ? ` ${cure}` : ''}`, {
    code: 'REDIS',
    retryable: PASSING.test(message),
  });
}

/** Whether a stream, or its group, is not there. */
export const isGone = (error: unknown): boolean =>
  /^(NOGROUP|ERR no such key)/.test((error as Error).message);
