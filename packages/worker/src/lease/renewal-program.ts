import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import {
  beatMs,
  blockedAfterMs,
  type CloneableSettings,
  Connection,
  type KnownCredential,
  PieceworkError,
  type RedisInput,
  renewAfterMs,
  WorkerCommands,
} from '@piecework/protocol/calls';
import { RenewalTable } from './renewal-table.js';

/*
 * The program of the renewal thread, which renewal-start.ts loads. It checks the beat of the main loop. While the beat
 * is recent, the thread does nothing. A late beat means that a handler blocks the main loop, which cannot renew then:
 * the thread renews, until the loop runs again or has been silent for `maxBlockMs`. After that the leases end and
 * others take the work over; the thread first stores the reason.
 *
 * The times (lease-times.ts): main renews after 1/3 of the lease, up to 1/10 late; the thread checks every 1/12 and
 * notices silence after 1/6. So it sends its first renewal after about 0.7 of a lease.
 */

export interface RenewalOrder {
  readonly settings: CloneableSettings;
  /** The last answer of `credentials`; undefined: user and password are among the settings. */
  readonly credential: KnownCredential | undefined;
  readonly memory: SharedArrayBuffer;
  /** Boot id of the worker. */
  readonly worker: string;
  readonly leaseMs: number;
  readonly maxBlockMs: number;
  /** How long the thread waits before it runs this program. */
  readonly loadAfterMs: number;
}

/** A message of the thread: why it cannot renew, '' when it can; undefined: it asks for a credential. */
export interface RenewalNews {
  readonly down?: string;
}

/** How long the main thread may take to answer, in ms: while it is blocked, the thread has to connect. */
const CREDENTIAL_MS = 500;

interface Asked {
  readonly id: string;
  readonly generation: number;
  at: bigint;
  /** The permits were withdrawn, the request ended, or the reason for giving it up was sent: nothing is left to do. */
  ended: boolean;
}

const { settings, credential, memory, worker, leaseMs, maxBlockMs } = workerData as RenewalOrder;
const table = new RenewalTable(memory);
const third = BigInt(Math.floor(renewAfterMs(leaseMs) * 1e6));
const asked = new Map<number, Asked>();

// What cannot be sent now is not sent later, when it may be too late: the next check sends it again.
const now = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  connectionName: 'piecework-renewal',
} as const;
/**
 * Asks the main thread, which alone can call `credentials`. While that is blocked, it is the latest answer, which most
 * servers accept for some time after a change.
 */
async function credentials(): Promise<KnownCredential> {
  const answered = new Promise<void>((resolve) => parentPort?.once('message', () => resolve()));
  parentPort?.postMessage({} satisfies RenewalNews);
  await Promise.race([answered, sleep(CREDENTIAL_MS)]);
  return latest as KnownCredential;
}

let latest = credential;
parentPort?.on('message', (known: KnownCredential) => {
  latest = known;
});

const connection = Connection.open(
  ('nodes' in settings
    ? {
        ...(credential && { credentials }),
        nodes: settings.nodes,
        options: {
          ...settings.options,
          enableOfflineQueue: false,
          redisOptions: { ...settings.options.redisOptions, ...now },
        },
      }
    : {
        ...(credential && { credentials }),
        ...{ ...settings, ...now, maxRetriesPerRequest: 0 },
      }) as RedisInput,
);

function report(down: string): void {
  parentPort?.postMessage({ down } satisfies RenewalNews);
}

function check(): void {
  // Before the table is read: see renewal-table.ts.
  const at = process.hrtime.bigint();
  const silentMs = Number(at - table.beatAt) / 1e6;
  if (silentMs < blockedAfterMs(leaseMs)) {
    asked.clear();
    return;
  }
  for (const { row, id, generation, ends } of table.occupied()) {
    let one = asked.get(row);
    if (one?.id !== id || one.generation !== generation) {
      one = { id, generation, at: 0n, ended: false };
      asked.set(row, one);
    }
    if (one.ended) continue;
    // Silent for too long, or the time of everything that runs there is up: others may have it.
    if (silentMs > maxBlockMs || (ends > 0n && at > ends)) {
      one.ended = true;
      // cure: a blocked event loop is named
      storeCause(one, silentMs);
      continue;
    }
    if (at - one.at < third) continue;
    one.at = at;
    renew(row, one).catch((error: unknown) => {
      one.at = 0n;
      // The connection reports by itself when it is back.
      if (!(error instanceof PieceworkError)) report((error as Error).message);
    });
  }
}

async function renew(row: number, one: Asked): Promise<void> {
  const { at, id, generation } = one;
  const commands = new WorkerCommands(connection, id);
  const { verdict } = await commands.renew(generation, worker, leaseMs, []);
  if (verdict === 'ok' || verdict === 'cancelling') table.renewed(row, at);
  else one.ended = true;
}

/** Stores why the lease will end. If that fails, the next check does it again. */
function storeCause(one: Asked, silentMs: number): void {
  const cause = { blockedMs: Math.round(silentMs) };
  const commands = new WorkerCommands(connection, one.id);
  commands.cause(one.generation, worker, cause, false).catch(() => {
    // cure: the cause of a lost lease is stored by a later check
    one.ended = false;
  });
}

connection.client.on('ready', () => report(''));
connection.client.on('error', (error: NodeJS.ErrnoException) => {
  // Of a host with several addresses it has no message.
  report(error.message || (error.code ?? 'no connection'));
});
connection.client.on('end', () => report('the connection has ended'));
// It tries again by itself; 'error' reported what went wrong.
connection.client.connect().catch(() => {});
setInterval(check, beatMs(leaseMs));
