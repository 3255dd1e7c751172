/*
 * Calls that wait listen to abort signals. A signal may exist as long as the process, and thousands of calls may share
 * it. Each signal gets one listener of ours, for as long as any call waits: Node warns of a leak at the eleventh, and
 * takes linear time to remove one. In Node 20 a signal keeps what `AbortSignal.any` made of it in memory.
 */

interface Listening {
  readonly acts: Set<() => void>;
  readonly run: () => void;
}

const listening = new WeakMap<AbortSignal, Listening>();

function listeningTo(signal: AbortSignal): Listening {
  const known = listening.get(signal);
  if (known) return known;
  const acts = new Set<() => void>();
  const run = () => {
    const all = [...acts];
    acts.clear();
    for (const act of all) act();
  };
  const made = { acts, run };
  listening.set(signal, made);
  return made;
}

/** Calls `act` when the signal aborts, or now if it has. Call the returned function to stop listening. */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  if (signal.aborted) {
    act();
    return () => {};
  }
  const { acts, run } = listeningTo(signal);
  if (acts.size === 0) signal.addEventListener('abort', run, { once: true });
  // The same function may be given twice.
  const own = () => act();
  acts.add(own);
  return () => {
    // cure: no listener is left on an abort signal
    if (acts.delete(own) && acts.size === 0) signal.removeEventListener('abort', run);
  };
}

/** Whether any of them has aborted. */
export const isAborted = (signals: readonly (AbortSignal | undefined)[]): boolean =>
  signals.some((signal) => signal?.aborted);
