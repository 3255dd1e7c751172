import { isCluster } from '../redis/client.js';
import type { Connection } from '../redis/connection.js';
import { type Reply, runCall, runCallOnce, type ScriptCall } from './run-script.js';
import type { ScriptName } from './scripts.generated.js';

/**
 * Runs a script that is only right on a server that still has the writes behind an earlier reply. So the script is sent
 * over connection number `epoch`, which brought that reply, and over no later one. In a cluster those writes may be on
 * another server than the one that this call goes to, so any connection is used there.
 * @returns undefined when that connection is gone, or broke before the reply: the script may have been carried out
 */
export async function runBehind<Name extends ScriptName>(
  connection: Connection,
  epoch: number,
  call: ScriptCall<Name>,
): Promise<Reply<Name> | undefined> {
  const { client } = connection;
  const plainly = () => runCall(client, call);
  if (isCluster(client)) return plainly();
  const reply = connection.epoch === epoch ? await runCallOnce(client, call) : undefined;
  if (reply || connection.epoch !== epoch) return reply;
  // A client of the user queued the call instead of sending it at once, and the connection has not changed.
  return plainly();
}
