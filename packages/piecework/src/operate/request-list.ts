import type { RequestStatus } from '@piecework/notifier';
import type { Connection, Shards } from '@piecework/protocol';
import type { ListOptions } from './options.js';
import { type Patiently, presentAmong } from './present.js';

/** How many requests are read in one round trip. */
const PAGE = 50;

/** The requests of a queue, each once: open ones in no order, then ended ones, the last first. */
export async function* listRequests(
  connection: Connection,
  shards: Shards,
  { state }: Required<ListOptions>,
  patiently: Patiently,
): AsyncGenerator<RequestStatus> {
  // A request may end, or begin its next generation, while the list is read.
  const listed = new Set<string>();
  for await (const request of allIn(state)) {
    if (listed.has(request.id)) continue;
    listed.add(request.id);
    yield request;
  }

  async function* allIn(wanted: 'open' | 'ended' | 'all'): AsyncGenerator<RequestStatus> {
    if (wanted !== 'ended') {
      for await (const page of pagesOf(shards.openIds(patiently))) yield* await read(page);
    }
    if (wanted === 'open') return;
    for await (const page of pagesOf(shards.endedIds(patiently))) {
      // One that runs again, as a new generation, is among the open ones.
      yield* (await read(page)).filter(({ status }) => status === 'complete');
    }
  }

  /** The requests of these ids that still exist. */
  async function read(ids: readonly string[]): Promise<RequestStatus[]> {
    const present = await presentAmong(connection, shards, ids, patiently);
    return present.filter((status) => status !== undefined);
  }
}

async function* pagesOf(ids: AsyncIterable<string>): AsyncGenerator<string[]> {
  let page: string[] = [];
  for await (const id of ids) {
    page.push(id);
    if (page.length < PAGE) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}
