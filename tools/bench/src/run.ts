import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { RunOrder, RunReport } from './run-order.js';

const PROGRAM = fileURLToPath(new URL('./run-in-child.js', import.meta.url));

type ReportOf<Kind extends RunOrder['kind']> = Extract<RunReport, { kind: Kind }>;

/**
 * Runs one order in a process of its own, and waits until that ends.
 * @throws Error if the process ends without a report: the contender failed
 */
export async function run<Kind extends RunOrder['kind']>(
  kind: Kind,
  rest: Omit<RunOrder, 'kind'>,
): Promise<ReportOf<Kind>> {
  const order: RunOrder = { kind, ...rest };
  const child = fork(PROGRAM, [JSON.stringify(order)]);
  let report: ReportOf<Kind> | undefined;
  child.once('message', (message) => {
    report = message as ReportOf<Kind>;
  });
  const [code, signal] = await once(child, 'exit');
  if (report && code === 0) return report;
  throw new Error(`${order.contender} failed (${signal ?? `exit code ${code}`}); see above`);
}
