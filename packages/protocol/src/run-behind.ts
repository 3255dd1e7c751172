import { Cluster } from 'ioredis';
import type { Connection } from './connection.js';
import { runScript, runScriptOnce, type ScriptCall } from './run-script.js';

/**
 * Runs a script that is right only where what was answered before it is kept: over the connection of the number
 * `epoch`, over which that was heard, and over no later one. A cluster may lose that on one server while this call
 * goes to another, so any connection will do there.
 * @returns undefined when that connection is gone, or broke before it answered: it may have been carried out or not
 */
export async function runBehind(
  connection: Connection,
  epoch: number,
  call: ScriptCall,
): Promise<unknown[] | undefined> {
  const { client } = connection;
  const plainly = () => runScript(client, call.name, call.keys, call.args);
  if (client instanceof Cluster) return plainly();
  const reply = connection.epoch === epoch ? await runScriptOnce(client, call) : undefined;
  if (reply || connection.epoch !== epoch) return reply;
  // A client of the caller's that sends later than it is told to: the connection has not changed.
  return plainly();
}
