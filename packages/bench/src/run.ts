import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { MemoryReport, RunOrder, RunReport, SpeedReport } from './run-order.js';

const PROGRAM = fileURLToPath(new URL('./run-in-child.js', import.meta.url));

/**
 * Runs one order in a process of its own and waits for the end of that.
 * @throws Error when the process ends without a report: the contender failed
 */
export async function run(
  order: RunOrder & { kind: 'speed' },
  nodeFlags?: string[],
): Promise<SpeedReport>;
export async function run(
  order: RunOrder & { kind: 'memory' },
  nodeFlags?: string[],
): Promise<MemoryReport>;
export async function run(order: RunOrder, nodeFlags: string[] = []): Promise<RunReport> {
  const child = fork(PROGRAM, [JSON.stringify(order)], { execArgv: nodeFlags });
  let report: RunReport | undefined;
  child.once('message', (message) => {
    report = message as RunReport;
  });
  const [code, signal] = await once(child, 'exit');
  if (report && code === 0) return report;
  throw new Error(`${order.contender} failed (${signal ?? `exit code ${code}`}); see above`);
}
