import {
  type Connection,
  RequestExistsError,
  RequestReads,
  withoutTrace,
} from '@piecework/protocol';
import { type Found, fieldsOf } from './create-request.js';
import type { CheckedOptions } from './options.js';

/*
 * Decides whether an existing request is the one that is being submitted. Options are compared by their digest, the
 * items of an array by the name that they give to the submission. For any other source the caller is trusted to
 * give the same items.
 */

/** What is submitted, and under which name. */
export interface Asked {
  readonly id: string;
  /** Name of the submission; a repetition has the same. */
  readonly owner: string;
  readonly digest: string;
  /** Whether the name identifies the items. */
  readonly named: boolean;
  readonly options: CheckedOptions;
}

/**
 * Returns when `found` is what was submitted and has all its items.
 * @throws RequestExistsError that says what differs, or that items are missing
 */
export async function expectSame(
  connection: Connection,
  queue: string,
  asked: Asked,
  found: Found,
): Promise<void> {
  await expectSameOptions(connection, queue, asked, found);
  const { id, owner, named, options } = asked;
  const { status, sealedBy } = found;
  if (sealedBy === owner) return;
  if (sealedBy === '') {
    const why =
      status === 'open'
        ? `${theOther(options)} is still being submitted; if its producer died, drop it and submit again (with the option source, a submission continues an interrupted one)`
        : `${theOther(options)} ended before all its items were in; drop it and submit again`;
    throw new RequestExistsError(id, status, why);
  }
  if (named) throw otherItems(asked, status);
}

/** What the caller can do about a request that differs. Callers that use a key do not know the id. */
const advice = ({ dedupe }: CheckedOptions): string =>
  dedupe ? 'use another key' : 'use another id, or drop that request and submit again';

/** How messages name the request that is there. */
const theOther = ({ dedupe }: CheckedOptions): string =>
  dedupe ? `a request of the dedupe key '${dedupe.key}'` : 'a request of this id';

export function otherItems(
  { id, options }: Pick<Asked, 'id' | 'options'>,
  status: string,
): RequestExistsError {
  const why = `${theOther(options)} exists with other items; ${advice(options)}`;
  return new RequestExistsError(id, status, why, ['items']);
}

export function alreadyThere(
  { id, options }: Pick<Asked, 'id' | 'options'>,
  status: string,
): RequestExistsError {
  const why = `${theOther(options)} exists and takes no more items; drop it to begin anew`;
  return new RequestExistsError(id, status, why);
}

/** Returns when the options are the same. @throws RequestExistsError that says which options differ */
export async function expectSameOptions(
  connection: Connection,
  queue: string,
  { id, digest, options }: Pick<Asked, 'id' | 'digest' | 'options'>,
  found: Found,
): Promise<void> {
  if (found.digest === digest) return;
  const differs = await differing(new RequestReads(connection, id), queue, digest, options);
  const what = `exists with other options (${differs.join(', ')})`;
  const why = `${theOther(options)} ${what}; ${advice(options)}`;
  throw new RequestExistsError(id, found.status, why, differs);
}

/** Names of the options that differ between a request and what is submitted. */
async function differing(
  commands: RequestReads,
  queue: string,
  digest: string,
  options: CheckedOptions,
): Promise<string[]> {
  const { digest: _, policy, heldUntil: __, ...fields } = fieldsOf(queue, digest, options);
  const { producerLeaseMs, deadlineMs = '', delayMs = '' } = options;
  const asked: Record<string, string | number | undefined> = {
    ...fields,
    producerLeaseMs,
    deadlineMs,
    delayMs,
  };
  const nameOf = (option: string) => (option === 'producerLeaseMs' ? 'leaseMs' : option);
  const kept = await commands.fields(...Object.keys(asked).map(nameOf), 'policy');
  // Stored with the time by which the request is expedited, if it is.
  kept['priority'] = (kept['priority'] ?? '').split('~')[0] ?? '';
  const differs = Object.keys(asked).filter(
    (option) => (kept[nameOf(option)] ?? '') !== String(asked[option]),
  );
  const keptPolicy = withoutTrace(kept['policy'] ?? '');
  if (keptPolicy !== withoutTrace(String(policy)))
    differs.push('backoff, attemptTimeoutMs or timing');
  // `update` may have changed an option to what is asked for now; and runAt is not stored as such.
  return differs.length > 0 ? differs : ['options'];
}
