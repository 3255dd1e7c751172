import { type Connection, type IdItem, type IdKey, IdQueueCommands } from '@piecework/protocol';
import { connected, freshName } from './given.js';

/*
 * Situations of queues of ids for tests of their scripts, and a picture of such a queue that is read by plain
 * commands.
 */

export const TIMEOUT_MS = 10_000;
export const INCARNATION = 'life';

export class IdScene {
  readonly connection: Connection;
  readonly commands: IdQueueCommands;
  readonly incarnation: string;
  #number = 0;

  constructor(connection: Connection, name: string, incarnation = INCARNATION) {
    this.connection = connection;
    this.commands = new IdQueueCommands(connection, name);
    this.incarnation = incarnation;
  }

  /** The next chunk of a sender, or one whose number is said. */
  add(ids: readonly string[], number = this.#number + 1, sender = 'sender') {
    this.#number = Math.max(this.#number, number);
    return this.commands.add(this.incarnation, { sender, number, keepMs: 60_000 }, ids);
  }

  pull(drawn?: number) {
    return this.commands.pull(this.incarnation, drawn);
  }

  /** Pulls what has to be ready. */
  async take(drawn?: number): Promise<IdItem> {
    const pulled = await this.pull(drawn);
    if (pulled.verdict !== 'ready') throw new Error(`pull: ${pulled.verdict}`);
    return pulled;
  }

  resume(key: IdKey) {
    return this.commands.resume(this.incarnation, key);
  }

  done(key: IdKey) {
    return this.commands.settle(this.incarnation, key);
  }

  fail(key: IdKey, message = 'no') {
    return this.commands.settle(this.incarnation, key, message);
  }

  inspect(first?: number, count?: number) {
    return this.commands.inspect(this.incarnation, first, count);
  }

  drop() {
    return this.commands.drop(this.incarnation);
  }

  async picture(): Promise<IdPicture> {
    const { state, pending, running, tasks, known, failed, senders } = this.commands.keys;
    const { client } = this.connection;
    const late = await client.zrange(running, '0', '-1', 'WITHSCORES');
    return {
      state: await client.hgetall(state),
      pending: await client.lrange(pending, 0, -1),
      running: Object.fromEntries(
        late.flatMap((number, i) => (i % 2 ? [] : [[number, Number(late[i + 1])]])),
      ),
      tasks: await client.hgetall(tasks),
      known: (await client.smembers(known)).sort(),
      failed: await client.lrange(failed, 0, -1),
      senders: await client.zrange(senders, '0', '-1'),
    };
  }
}

export interface IdPicture {
  readonly state: Record<string, string>;
  readonly pending: readonly string[];
  readonly running: Record<string, number>;
  readonly tasks: Record<string, string>;
  readonly known: readonly string[];
  readonly failed: readonly string[];
  readonly senders: readonly string[];
}

/** What must never be: a task without its time, the counts not those of what is there. */
export function idFaultsOf({ state, pending, running, tasks, known }: IdPicture): string[] {
  const faults: string[] = [];
  const numbers = Object.keys(tasks).sort().join();
  if (numbers !== Object.keys(running).sort().join()) faults.push('tasks are not those that run');
  const pulled = Number(state['pulled'] ?? 0);
  if (pulled !== Number(state['completed'] ?? 0) + Object.keys(tasks).length)
    faults.push('what was pulled neither runs nor is completed');
  const there = [...pending, ...Object.values(tasks).map((task) => task.replace(/^\d+:\d+:/, ''))];
  if (state['unique'] === '1' && there.sort().join() !== known.join())
    faults.push('known ids are not those that are there');
  return faults;
}

/** A queue of ids that exists. */
export async function givenIds(
  ids: readonly string[] = [],
  { unique = false, timeoutMs = TIMEOUT_MS }: { unique?: boolean; timeoutMs?: number } = {},
): Promise<IdScene> {
  const scene = new IdScene(await connected(), freshName('ids'));
  await scene.commands.join(INCARNATION, { unique, timeoutMs }, TIMEOUT_MS);
  if (ids.length > 0) await scene.add(ids);
  return scene;
}
