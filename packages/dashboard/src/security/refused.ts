/** The answer is an error, whose message the page may show. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly statusCode: number;
  readonly code: string;

  constructor(statusCode: number, message: string, code = 'REFUSED') {
    super(message);
    this.statusCode = statusCode;
    this.code = code;
  }
}

/** Errors of Piecework that say something about a request, and nothing about servers: the answer to each. */
const TELLABLE: Readonly<Record<string, number>> = {
  ...{ NOT_FOUND: 404, EXPIRED: 404, DROPPED: 404, LOST: 404 },
  ...{ NOT_COMPLETE: 409, ENDED: 409, SEALED: 409, EXISTS: 409 },
  ...{ RESULTS_DISCARDED: 409, RESULTS_LOST: 409, INVALID_OPTION: 400 },
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
    return { status: error.statusCode, code: error.code, message: error.message, isNews: false };
  const known = TELLABLE[String(code)];
  if (known !== undefined)
    return { status: known, code: String(code), message: String(message), isNews: false };
  // Of Fastify: a body that is too large, no JSON, and the like.
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500)
    return {
      status: statusCode,
      code: 'REFUSED',
      message: 'The dashboard cannot read this request: it is too large, or no JSON.',
      isNews: false,
    };
  const unreachable = ['CONNECTION', 'INDETERMINATE', 'REDIS', 'FULL', 'READ_ONLY', 'CLUSTER_DOWN'];
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
