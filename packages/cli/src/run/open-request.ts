import type { RequestOptions } from '@piecework/producer';
import { RequestExistsError } from '@piecework/protocol';
import { nanoid } from 'nanoid';
import type { OpenHandle, Piecework } from 'piecework/client';

/** Opens the request of a run. @throws RequestExistsError when another run of its `--dedupe-key` has it open */
export async function openRequest(
  pw: Piecework,
  options: RequestOptions,
  isNamed: boolean,
): Promise<OpenHandle<unknown>> {
  const isNew = !isNamed && options.dedupe === undefined;
  const open = await pw.open({ ...(isNew ? { id: `run-${nanoid(10)}` } : {}), ...options });
  if (options.dedupe && open.joined) {
    open.leave();
    const why = `another run of this key is under way; wait for its end (piecework watch ${open.id}), or take another --dedupe-key`;
    throw new RequestExistsError(open.id, 'open', why);
  }
  return open;
}
