import { type Connection, RequestCommands, RequestExistsError } from '@piecework/protocol';
import { type Found, fieldsOf } from './bring-up.js';
import type { CheckedOptions } from './options.js';

/*
 * Whether a request that exists is the one that is being submitted. Options are compared by their digest,
 * the items of an array by the name that they give to the submission; of any other source the word of the
 * caller is taken that they are the same.
 */

/** What is submitted, and under which name. */
export interface Asked {
  readonly id: string;
  /** Name of the submission; the same for a repetition. */
  readonly owner: string;
  readonly digest: string;
  /** Whether the name says what the items are. */
  readonly named: boolean;
  readonly options: CheckedOptions;
}

/**
 * Nothing, when `found` is what was asked for and has all its items.
 * @throws RequestExistsError that says what differs, or that it is not all there
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
        ? `${theOther(options)} is still being submitted; if its producer died, drop it and submit again`
        : `${theOther(options)} ended before all its items were in; drop it and submit again`;
    throw new RequestExistsError(id, status, why);
  }
  if (named) throw otherItems(asked, status);
}

/** Who found the id by a key does not know it. */
const theOther = ({ dedupe }: CheckedOptions): string =>
  dedupe ? `a request of the dedupe key '${dedupe.key}'` : 'a request of this id';

export function otherItems(
  { id, options }: Pick<Asked, 'id' | 'options'>,
  status: string,
): RequestExistsError {
  const why = `${theOther(options)} exists with other items`;
  return new RequestExistsError(id, status, why, ['items']);
}

export function alreadyThere(
  { id, options }: Pick<Asked, 'id' | 'options'>,
  status: string,
): RequestExistsError {
  const why = `${theOther(options)} exists and takes no more items; drop it to begin anew`;
  return new RequestExistsError(id, status, why);
}

/** @throws RequestExistsError that says which options differ */
export async function expectSameOptions(
  connection: Connection,
  queue: string,
  { id, digest, options }: Pick<Asked, 'id' | 'digest' | 'options'>,
  found: Found,
): Promise<void> {
  if (found.digest === digest) return;
  const differs = await differing(new RequestCommands(connection, id), queue, digest, options);
  const why = `${theOther(options)} exists with other options (${differs.join(', ')})`;
  throw new RequestExistsError(id, found.status, why, differs);
}

/** Which options of a request are not those that are asked for. */
async function differing(
  commands: RequestCommands,
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
  // With the time by which it is expedited, if it is.
  kept['priority'] = (kept['priority'] ?? '').split('~')[0] ?? '';
  const differs = Object.keys(asked).filter(
    (option) => (kept[nameOf(option)] ?? '') !== String(asked[option]),
  );
  if (kept['policy'] !== policy) differs.push('backoff, attemptTimeoutMs or timing');
  // One that was changed meanwhile looks as if it were what was asked for; runAt is not kept as such.
  return differs.length > 0 ? differs : ['options'];
}
