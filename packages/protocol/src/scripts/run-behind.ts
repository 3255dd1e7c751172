import { Cluster } from 'ioredis';
import type { Connection } from '../redis/connection.js';
import { type Reply, runCall, runCallOnce, type ScriptCall } from './run-script.js';
import type { ScriptName } from './scripts.generated.js';

/**
 * Runs a script that is right only where what was answered before it is kept: over the connection of the number
 * `epoch`, over which that was heard, and over no later one. A cluster may lose that on one server while this call
 * goes to another, so any connection will do there.
 * @returns undefined when that connection is gone, or broke before it answered: it may have been carried out or not
 */
export async function runBehind<Name extends ScriptName>(
  connection: Connection,
  epoch: number,
  call: ScriptCall<Name>,
): Promise<Reply<Name> | undefined> {
  const { client } = connection;
  const plainly = () => runCall(client, call);
  if (client instanceof Cluster) return plainly();
  const reply = connection.epoch === epoch ? await runCallOnce(client, call) : undefined;
  if (reply || connection.epoch !== epoch) return reply;
  // A client of the caller's that sends later than it is told to: the connection has not changed.
  return plainly();
}
