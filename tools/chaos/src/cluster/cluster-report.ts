import { forTerminal, whole } from '../report/table.js';
import { stallsOf } from './stalls.js';

const FAULTS = [
  ...(['fail over', 'kill master', 'move queue slot', 'move request slot'] as const),
  'kill worker',
] as const;

/** How long the fleet stalled at each fault of the cluster, and the error replies of the servers. */
export async function clusterReport(
  journals: string,
  errors: ReadonlyMap<string, number>,
): Promise<string> {
  const stalls = await stallsOf(journals, FAULTS);
  const rows = stalls.map(({ fault, count, p50Ms, maxMs, again, mostAgain }) => [
    ...[fault, whole(count), whole(p50Ms), whole(maxMs), whole(again), whole(mostAgain)],
  ]);
  const head = ['', 'times', 'stall p50 ms', 'max ms', 'run again', 'most at one'];
  const told = [...errors].sort(([a], [b]) => (a < b ? -1 : 1));
  const replies = told.map(([name, count]) => `${name} ${whole(count)}`).join(', ') || 'none';
  return ['No handler began', forTerminal({ head, rows }), `Error replies: ${replies}`].join(
    '\n\n',
  );
}
