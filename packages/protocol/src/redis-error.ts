import { ConnectionError, PieceworkError, ServerError } from './errors.js';

/** Replies that mean "not now": the same call may be sent again, and every script bears it. */
const PASSING =
  /^(TRYAGAIN|LOADING|CLUSTERDOWN|MASTERDOWN|BUSY|MISCONF|NOREPLICAS|UNBLOCKED|MOVED|ASK|ERR max number of clients)\b/;

const CONNECTION =
  /Connection is closed|due to connection close|Socket timeout|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|ENOENT|max retries|Stream isn't writeable|Command timed out|Failed to refresh slots|All .*attempts failed|None of startup nodes|Too many Cluster redirections/i;

/** A cluster's errors carry that of the last node beside their own. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { lastNodeError } = error as { lastNodeError?: { message?: string } };
  return lastNodeError?.message ? `${error.message} ${lastNodeError.message}` : error.message;
}

/**
 * Turns what ioredis threw into one of our errors. ioredis attaches the command with its arguments
 * to an error; only its message is taken over, so that no payload reaches a log.
 */
export function redisError(error: unknown, doing: string): PieceworkError {
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
  const name = error instanceof Error ? error.name : '';
  if (CONNECTION.test(message) || name === 'MaxRetriesPerRequestError') {
    return new ConnectionError(`${doing}: ${message}`);
  }
  return new ServerError(`${doing}: ${message}`, {
    code: 'REDIS',
    retryable: PASSING.test(message),
  });
}
