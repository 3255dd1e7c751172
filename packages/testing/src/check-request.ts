import { InvalidOptionError } from '@piecework/protocol';

/** @throws InvalidOptionError for what is no handle of a request, such as an id or a promise of a handle */
export function checkRequest(request: unknown): void {
  if (typeof (request as { failures?: unknown } | undefined)?.failures === 'function') return;
  const allowed = 'what pw.request(id) returns, or pw.submit() after an await';
  throw new InvalidOptionError('request', request, allowed);
}
