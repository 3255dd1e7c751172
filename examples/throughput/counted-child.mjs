// The child's side of processes.mjs.
import { once } from 'node:events';

const REPORT_EVERY_MS = 200;

/**
 * Runs `work(options, signal)` in a child process and reports `count()` meanwhile. The signal aborts
 * when the parent says so or is gone: nothing outlives it.
 */
export async function runChild(work, count) {
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.once('disconnect', stop);
  const [options] = await once(process, 'message');
  process.once('message', stop);
  const report = () => process.connected && process.send(count(), () => {});
  const timer = setInterval(report, REPORT_EVERY_MS);
  try {
    await work(options, stopping.signal);
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
  clearInterval(timer);
  report();
  if (process.connected) process.disconnect();
}
