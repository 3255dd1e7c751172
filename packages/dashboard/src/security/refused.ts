/** The answer is an error, whose message the page may show. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly statusCode: number;
  /** Headers of the answer. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(statusCode: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.statusCode = statusCode;
    this.headers = headers;
  }
}

/** Errors of Piecework that say something about a request, and nothing about servers: the answer to each. */
const TELLABLE: Readonly<Record<string, number>> = {
  ...{ NOT_FOUND: 404, EXPIRED: 404, DROPPED: 404, LOST: 404 },
  ...{ NOT_COMPLETE: 409, ENDED: 409, SEALED: 409, EXISTS: 409 },
  ...{ RESULTS_DISCARDED: 409, RESULTS_LOST: 409, INVALID_OPTION: 400 },
  // The visitor has left: nobody reads the answer.
  ABORTED: 499,
};

/** Refusals of others, by status. */
const WORDS: Readonly<Record<number, string>> = {
  401: 'Sign in first.',
  403: 'You may not do this.',
  404: 'There is no such page.',
  408: 'The request came too slowly.',
  413: 'The body of the request is too large.',
  414: 'The address is too long.',
  415: 'Send JSON.',
  429: 'Too many requests; wait a minute.',
  431: 'The headers of the request are too large.',
};

/** What the page receives of an error. @param isNews whether the log should have it */
export function answerOf(error: unknown): {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly isNews: boolean;
} {
  const { code, message, statusCode } = error as Record<string, unknown>;
  if (error instanceof Refused)
    return { status: error.statusCode, code: 'REFUSED', message: error.message, isNews: false };
  const known = TELLABLE[String(code)];
  if (known !== undefined)
    return { status: known, code: String(code), message: String(message), isNews: false };
  // Of Fastify, or of the application's `authorize`.
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    const words = WORDS[statusCode] ?? 'The dashboard cannot read this request.';
    return { status: statusCode, code: 'REFUSED', message: words, isNews: false };
  }
  const unreachable = [
    ...['CONNECTION', 'INDETERMINATE', 'TIMEOUT', 'REDIS', 'FULL', 'READ_ONLY', 'CLUSTER_DOWN'],
  ];
  if (unreachable.includes(String(code)))
    return {
      status: 503,
      code: 'REDIS',
      message: 'Redis does not answer as it should. The log of the dashboard says more.',
      isNews: true,
    };
  return {
    status: 500,
    code: 'UNEXPECTED',
    message: 'Something went wrong. The log of the dashboard says more.',
    isNews: true,
  };
}

/** The body of an answer that is an error. */
export function bodyOf({ code, message }: { readonly code: string; readonly message: string }): {
  readonly error: { readonly code: string; readonly message: string };
} {
  return { error: { code, message } };
}
