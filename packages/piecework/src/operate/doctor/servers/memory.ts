import { keepsWork, TIGHT_MEMORY } from '@piecework/protocol';
import { error, type Finding, megabytes, ok, warning } from '../finding.js';
import { isOfDev } from './persistence.js';
import type { Server } from './servers.js';

/** Parts of maxmemory above which use is a warning, and an error. */
const MUCH = 0.75;
const NEARLY_ALL = 0.9;

/** What a `volatile-` policy deletes. */
const EVICTED =
  'keys that expire when memory is full: results and errors of ended requests before their time, dedupe keys, the history. Unfinished work stays';

/** Checks whether a server would evict keys, and how much memory it has left. */
export async function checkMemory(servers: readonly Server[]): Promise<Finding[]> {
  const findings = servers.map(async (server) => memoryOf(server, await isOfDev(server.client)));
  return (await Promise.all(findings)).flat();
}

function memoryOf({ name, info }: Server, isForTrial: boolean): Finding[] {
  const most = info.number('maxmemory');
  // Buffers of replicas and of the append-only file do not count against maxmemory.
  const used = info.number('used_memory') - info.number('mem_not_counted_for_evict');
  const policy = info.text('maxmemory_policy');
  const findings: Finding[] = [];
  if (policy !== 'noeviction') {
    const isKept = keepsWork(policy);
    const what = `${name}: maxmemory-policy is ${policy}, which deletes ${isKept ? EVICTED : 'work at random'}`;
    const advice =
      'CONFIG SET maxmemory-policy noeviction, and write it into the configuration (rented servers, and what may be deleted: docs/operations.md#eviction)';
    findings.push(
      most === 0
        ? warning('memory', `${what} as soon as maxmemory is set`, advice)
        : isKept
          ? warning('memory', what, advice)
          : error('memory', what, advice),
    );
  }
  if (most === 0 && !isForTrial) {
    findings.push(
      warning(
        'memory',
        `${name}: no maxmemory: when the machine's memory is full, its kernel kills Redis or another process`,
        'CONFIG SET maxmemory to less than the machine has; a full Redis refuses new work and finishes what it has',
      ),
    );
  } else if (most > 0 && used / most > MUCH) {
    const paused =
      used >= most
        ? ': it is full and takes no new work; what runs is settled all the same'
        : used / most >= TIGHT_MEMORY
          ? ': workers read no more of requests whose results need memory, until there is some'
          : '';
    const what = `${name}: ${megabytes(used)} of ${megabytes(most)} are used${paused}`;
    const advice =
      "CONFIG SET maxmemory to more, drop complete requests, shorten retentionMs, discard results (results: 'discard'), or give big requests a window";
    findings.push(
      used / most > NEARLY_ALL ? error('memory', what, advice) : warning('memory', what, advice),
    );
  }
  if (findings.length > 0) return findings;
  const bound = most === 0 ? '' : ` of ${megabytes(most)}`;
  return [ok('memory', `${name}: ${megabytes(used)}${bound}, nothing is evicted`)];
}
