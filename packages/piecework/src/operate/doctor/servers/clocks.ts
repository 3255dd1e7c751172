import { redisError } from '@piecework/protocol';
import { error, type Finding, ok, warning } from '../finding.js';
import { type Server, timeOf } from './servers.js';

/** Between servers: times of the queue's side are compared with the clock of the requests' side. */
const APART_MS = 1_000;
/** From here on ticks of the agenda seem to come late (TIMES.awayMs), and leases get grace for it. */
const FAR_APART_MS = 10_000;
/** Between this process and a server: only `runAt` and displayed times depend on it. */
const OURS_APART_MS = 5_000;

/** How far the clocks of the masters are from each other, and from this process's. */
export async function checkClocks(servers: readonly Server[]): Promise<Finding[]> {
  const times = await Promise.all(
    servers.map(async ({ name, client }) => ({ name, ...(await timeOf(client)) })),
  ).catch((thrown: unknown) => {
    throw redisError(thrown, 'doctor');
  });
  times.sort((a, b) => a.aheadMs - b.aheadMs);
  const [first, last] = [times[0], times.at(-1)];
  if (!first || !last) return [];
  const findings: Finding[] = [];
  // Minus the round trips, which are no difference of clocks.
  const apart = last.aheadMs - first.aheadMs - last.byMs - first.byMs;
  if (apart > APART_MS) {
    const what = `the clock of ${last.name} is ${seconds(apart)} ahead of that of ${first.name}`;
    const advice = 'synchronise both clocks (chrony, ntpd)';
    findings.push(
      apart > FAR_APART_MS
        ? error('clocks', `${what}: leases of dead workers last longer`, advice)
        : warning('clocks', what, advice),
    );
  }
  const off = times.find(({ aheadMs, byMs }) => Math.abs(aheadMs) - byMs > OURS_APART_MS);
  if (off) {
    const what = `the clock of ${off.name} is ${seconds(Math.abs(off.aheadMs))} ${off.aheadMs > 0 ? 'ahead of' : 'behind'} this process's`;
    const advice =
      'synchronise the clocks (chrony, ntpd); `runAt` and times in logs go by this process, all else by the server';
    findings.push(warning('clocks', what, advice));
  }
  if (findings.length > 0) return findings;
  return [ok('clocks', 'the clocks of the servers and of this process agree')];
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
