import type { Redis } from 'ioredis';

/**
 * Pops while the hash slot of the queue moves from one server of a cluster to another. Until the move has ended, a
 * command on several keys is refused: with TRYAGAIN when some of the keys are here, with ASK when none is; an empty
 * list is no key and counts as moved. A command on a single key is served by the server that has the key. So the
 * lengths of the lists are read one by one on both servers, and the first list that has tokens is popped.
 *
 * A token on neither server is on its way, or was never pushed: pushes are refused as well, until the move has
 * ended.
 */

/** Whether a pop was refused because the slot moves. */
export function isMoving(error: unknown): boolean {
  return /^(TRYAGAIN|ASK) /.test((error as Error).message);
}

type Answer = [error: Error | null, reply: unknown];

interface Found {
  readonly client: Redis;
  /** The other server: ASKING has to go before each command. */
  readonly asking: boolean;
}

/**
 * Up to `count` tokens of the first of `lists` that has any. `here` gives the slot away, `at` opens a
 * client to the server that gets it.
 * @throws what the server says of a slot that is not here any more
 */
export async function popSingly(
  here: Redis,
  at: (address: string) => Promise<Redis>,
  lists: readonly string[],
  count: number,
): Promise<string[]> {
  const found = new Map<string, Found>();
  const gone = new Map<string, string[]>();
  const lengths = await answers(
    here,
    lists.map((list) => ['llen', list]),
  );
  for (const [i, list] of lists.entries()) {
    const [error, length] = lengths[i] as Answer;
    const address = error ? askedOf(error) : undefined;
    if (error && address === undefined) throw error;
    if (address !== undefined) gone.set(address, [...(gone.get(address) ?? []), list]);
    else if (Number(length) > 0) found.set(list, { client: here, asking: false });
  }
  for (const [address, moved] of gone) {
    const client = await at(address);
    const there = await answers(
      client,
      moved.flatMap((list) => [['asking'], ['llen', list]]),
    );
    for (const [i, list] of moved.entries()) {
      const [error, length] = there[2 * i + 1] as Answer;
      // That server does not have the slot any more, or not yet.
      if (error) throw error;
      if (Number(length) > 0) found.set(list, { client, asking: true });
    }
  }
  for (const list of lists) {
    const place = found.get(list);
    if (!place) continue;
    const pop = ['lmpop', 1, list, 'RIGHT', 'COUNT', count];
    const commands = place.asking ? [['asking'], pop] : [pop];
    const [error, popped] = (await answers(place.client, commands)).at(-1) as Answer;
    // The list moved just now: the next pop finds it.
    if (error && askedOf(error) === undefined) throw error;
    const tokens = (popped as [string, string[]] | null)?.[1] ?? [];
    if (tokens.length > 0) return tokens;
  }
  return [];
}

async function answers(client: Redis, commands: (string | number)[][]): Promise<Answer[]> {
  return ((await client.pipeline(commands).exec()) ?? []) as Answer[];
}

/** The server that an ASK names. */
function askedOf({ message }: Error): string | undefined {
  return /^ASK \d+ (\S+)$/.exec(message)?.[1];
}
