import { error, type Finding, megabytes, ok, warning } from '../finding.js';
import { isOfDev } from './persistence.js';
import type { Server } from './servers.js';

/** A replica that is further behind would lose more than this when it takes over. */
const BEHIND_BYTES = 16 * 1024 * 1024;
const SILENT_SECONDS = 10;

/** Checks which replicas could take over from each server, and how far behind they are. */
export async function checkReplicas(servers: readonly Server[]): Promise<Finding[]> {
  const findings = servers.map(async (server) => replicasOf(server, await isOfDev(server.client)));
  return (await Promise.all(findings)).flat();
}

function replicasOf({ name, info }: Server, isForTrial: boolean): Finding[] {
  if (info.text('role') === 'slave') {
    const master = `${info.text('master_host')}:${info.text('master_port')}`;
    const what = `${name} is a replica of ${master}: nothing can be written here`;
    return [error('replicas', what, `connect to ${master}, or through Sentinel to the master`)];
  }
  const offset = info.number('master_repl_offset');
  const replicas = info.numbered('slave').map(replicaOf);
  if (replicas.length === 0 && isForTrial)
    return [ok('replicas', `${name}: a server of \`piecework dev\`: it needs none`)];
  if (replicas.length === 0) {
    const what = `${name} has no replica: while it is down everything waits, and its disk has the only copy`;
    return [warning('replicas', what, 'add a replica, and Sentinel or a cluster to fail over')];
  }
  const behind = replicas.flatMap((replica) => {
    const bytes = offset - Number(replica['offset']);
    const silent = Number(replica['lag']) > SILENT_SECONDS;
    if (replica['state'] === 'online' && !silent && bytes <= BEHIND_BYTES) return [];
    const what = `${name}: replica ${replica['ip']}:${replica['port']} is ${replica['state']}, ${megabytes(Math.max(0, bytes))} and ${replica['lag']} s behind`;
    const advice =
      'read its log, and check the network between them; a failover to it would lose that much';
    return [warning('replicas', what, advice)];
  });
  if (behind.length > 0) return behind;
  return [ok('replicas', `${name}: ${replicas.length} in step`)];
}

/** `ip=127.0.0.1,port=6380,state=online,offset=14,lag=0` */
function replicaOf(text: string): Record<string, string> {
  return Object.fromEntries(text.split(',').map((pair) => pair.split('=') as [string, string]));
}
