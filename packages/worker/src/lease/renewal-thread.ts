import { parentPort, workerData } from 'node:worker_threads';
import {
  type CloneableSettings,
  Connection,
  PieceworkError,
  type RedisInput,
  RequestCommands,
} from '@piecework/protocol/calls';
import { RenewalTable } from './renewal-table.js';

/*
 * The program of the renewal thread. It looks at the beat of the main loop. While that is fresh it
 * does nothing. When it is late, a handler holds up the main loop, which then cannot renew: this
 * thread does, until the main loop answers again or has been silent for `maxBlockMs`. From then on
 * the leases end and others take the work over; before that it notes why.
 *
 * The times, in parts of the lease: main renews at 1/3, seen up to 1/10 late; silence is noticed
 * after 1/6, looked for every 1/12: the first renewal from here is asked for at about 0.7.
 */

export interface RenewalOrder {
  readonly settings: CloneableSettings;
  readonly memory: SharedArrayBuffer;
  /** Boot id of the worker. */
  readonly worker: string;
  readonly leaseMs: number;
  readonly maxBlockMs: number;
}

/** What the thread says: why it cannot renew, '' when it can. */
export interface RenewalNews {
  readonly down: string;
}

interface Asked {
  readonly id: string;
  readonly generation: number;
  at: bigint;
  /** The permits were withdrawn, the request ended, or it was given up: nothing to renew. */
  over: boolean;
}

const { settings, memory, worker, leaseMs, maxBlockMs } = workerData as RenewalOrder;
const table = new RenewalTable(memory);
const third = BigInt(Math.floor((leaseMs / 3) * 1e6));
const asked = new Map<number, Asked>();

// What cannot be sent now is not sent later: by then it may be too late, and the next look asks again.
const now = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  connectionName: 'piecework-renewal',
} as const;
const connection = Connection.open(
  ('nodes' in settings
    ? {
        nodes: settings.nodes,
        options: {
          ...settings.options,
          enableOfflineQueue: false,
          redisOptions: { ...settings.options.redisOptions, ...now },
        },
      }
    : { ...settings, ...now, maxRetriesPerRequest: 0 }) as RedisInput,
);

function tell(down: string): void {
  parentPort?.postMessage({ down } satisfies RenewalNews);
}

function look(): void {
  // Before the table is read: see renewal-table.ts.
  const at = process.hrtime.bigint();
  const silentMs = Number(at - table.beatAt) / 1e6;
  if (silentMs < leaseMs / 6) {
    asked.clear();
    return;
  }
  for (const { row, id, generation, ends } of table.held()) {
    let one = asked.get(row);
    if (one?.id !== id || one.generation !== generation) {
      one = { id, generation, at: 0n, over: false };
      asked.set(row, one);
    }
    if (one.over) continue;
    // Silent for too long, or everything that runs there is over its time: others may have it.
    if (silentMs > maxBlockMs || (ends > 0n && at > ends)) {
      one.over = true;
      giveUp(one, silentMs);
      continue;
    }
    if (at - one.at < third) continue;
    one.at = at;
    renew(row, one).catch((error: unknown) => {
      one.at = 0n;
      // The connection says for itself when it is back.
      if (!(error instanceof PieceworkError)) tell((error as Error).message);
    });
  }
}

async function renew(row: number, one: Asked): Promise<void> {
  const { at, id, generation } = one;
  const commands = new RequestCommands(connection, id);
  const { verdict } = await commands.renew(generation, worker, leaseMs, []);
  if (verdict === 'ok' || verdict === 'cancelling') table.renewed(row, at);
  else one.over = true;
}

/** Says why the lease will end. Unsaid, it ends all the same. */
function giveUp({ id, generation }: Asked, silentMs: number): void {
  const cause = { blockedMs: Math.round(silentMs) };
  new RequestCommands(connection, id).cause(generation, worker, cause, false).catch(() => {});
}

connection.client.on('ready', () => tell(''));
connection.client.on('error', (error: Error) => tell(error.message));
connection.client.on('end', () => tell('the connection has ended'));
// Goes on trying by itself; what went wrong was told by 'error'.
connection.client.connect().catch(() => {});
setInterval(look, leaseMs / 12);
