/*
 * Texts and fields of the errors that ioredis throws. They are no documented interface:
 * test/cluster/ioredis-internals.test.ts proves them against the installed version.
 */

const ALL_SENTINELS = /^All sentinels are unreachable.*?(?: Last error: (.*))?$/s;
const TOO_MANY_REDIRECTIONS = /^Too many Cluster redirections/;
const LAST_REDIRECTION = /^Too many Cluster redirections\. Last error: (?:\w*Error: )?(.*)$/s;

/** Whether ioredis was redirected too often. Its last answer may be any error reply, such as NOSCRIPT. */
export const isRedirectedTooOften = (error: unknown): boolean =>
  error instanceof Error && TOO_MANY_REDIRECTIONS.test(error.message);

/** The message of an error, with that of the node that caused it: a cluster client wraps it or puts it beside. */
export function messageWithCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const last = LAST_REDIRECTION.exec(error.message)?.[1];
  if (last) return last;
  const { lastNodeError } = error as { lastNodeError?: unknown };
  return [error, lastNodeError].map(ownMessage).filter(Boolean).join(' ');
}

/** Node tries each address of a host, as those of localhost; the error about all of them has no message of its own. */
function ownMessage(error: unknown): string {
  const {
    message = '',
    errors,
    code = '',
  } = (error ?? {}) as { message?: string; errors?: unknown; code?: string };
  if (message !== '') return message;
  const each = new Set((Array.isArray(errors) ? errors : []).map(ownMessage).filter(Boolean));
  return each.size > 0 ? [...each].join(', ') : code;
}

/**
 * Whether a client has asked all of its Sentinels without success (it keeps asking), and the last error of one.
 * `last` is undefined when they answered and none named a server. undefined: the error says something else.
 */
export function sentinelsFailed(error: unknown): { readonly last: string | undefined } | undefined {
  const found = error instanceof Error ? ALL_SENTINELS.exec(error.message) : null;
  return found ? { last: found[1] } : undefined;
}
