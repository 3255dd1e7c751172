import type { ProgressReport } from '@piecework/notifier';
import type { Piecework } from 'piecework';
import { print, say } from '../terminal/print.js';
import { showProgress } from '../terminal/progress-bar.js';
import { Silence } from '../terminal/silence.js';

/** Shows the progress of a request until it is complete. @returns the exit code */
export async function watchRequest(
  pw: Piecework,
  id: string,
  values: { readonly json: boolean; readonly everyMs: number },
): Promise<number> {
  const request = pw.request(id);
  using silence = new Silence(values.everyMs);
  const reports = silence.of(request.progress({ everyMs: values.everyMs }));
  if (values.json) for await (const report of reports) print(reportLine(report));
  else await showProgress(reports);
  const { status, counts } = await request.completion();
  if (!values.json) say(`${id} ${status}: ${counts.succeeded} of ${counts.total} succeeded`);
  return status === 'succeeded' ? 0 : 1;
}

function reportLine({ status, generation, counts, ...rest }: ProgressReport): string {
  return JSON.stringify({ status, generation, counts, ...rest });
}
