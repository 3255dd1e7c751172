/**
 * Returns memory that only the start needed. To load the modules, V8's young generation grows to 16 MB, mostly for the
 * 2,000 methods of ioredis. V8 shrinks it in a full collection while little is allocated, and an idle process seldom
 * comes to one, as it makes no garbage. The protocol of the debugger has a command for it. It blocks the event loop for
 * some 30 ms, more with a larger heap.
 */

/** The time between the checks whether the process is idle, in ms. */
const EVERY_MS = 2_000;
/** A larger heap has been used for work already, and would be blocked for longer. */
const MAX_HEAP_BYTES = 64 << 20;

/** Trims the memory of this process once, as soon as `isIdle` holds at a check. */
export function trimWhenIdle(isIdle: () => boolean): void {
  const timer = setInterval(() => {
    if (!isIdle()) return;
    clearInterval(timer);
    if (process.memoryUsage().heapUsed < MAX_HEAP_BYTES) void trimMemory();
  }, EVERY_MS);
  timer.unref();
}

async function trimMemory(): Promise<void> {
  // Some builds of Node have no inspector. Without it the memory stays, and nothing else changes.
  const { Session } = (await import('node:inspector').catch(() => undefined)) ?? {};
  if (!Session) return;
  const session = new Session();
  session.connect();
  // Not in the callback: V8 still holds a lock there, for which closing the session would wait for ever.
  session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect()));
}
