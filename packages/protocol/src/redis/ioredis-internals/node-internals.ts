import type { Command, Redis } from 'ioredis';

/*
 * What we use of a client of one server that ioredis does not document. test/cluster/ioredis-internals.test.ts proves
 * each function against the installed version.
 */

interface Waiting {
  readonly commandQueue: { toArray(): { readonly command: Command }[] };
  readonly offlineQueue: { toArray(): { readonly command: Command }[] };
}

interface Connecting {
  reconnectTimeout?: NodeJS.Timeout | null;
}

/** The db that the client has selected: its owner may have changed it since. `duplicate` uses the options instead. */
export function selectedDb(client: Redis): number {
  const { condition, options } = client as Redis & { condition?: { select?: number } | null };
  return condition?.select ?? options.db ?? 0;
}

/** The commands that a client has sent without an answer, then those that it has not sent yet. */
export function unansweredCommands(client: Redis): Command[] {
  const { commandQueue, offlineQueue } = client as unknown as Waiting;
  return [...commandQueue.toArray(), ...offlineQueue.toArray()].map(({ command }) => command);
}

/** Cancels the attempt to reconnect that ioredis has scheduled: `connect()` would otherwise run beside it. */
export function cancelReconnect(client: Redis): void {
  clearTimeout((client as unknown as Connecting).reconnectTimeout ?? undefined);
}

/**
 * Has the client leave each connection once. `reconnectOnError` may ask for that with each of the replies that are under
 * way, and ioredis adds a listener to the socket each time.
 */
export function leaveOnce(client: Redis): Redis {
  const disconnect = client.disconnect.bind(client);
  client.disconnect = (reconnect) => {
    // cure: a connection is left once
    if (reconnect && client.stream?.writableEnded) return;
    disconnect(reconnect);
  };
  return client;
}
