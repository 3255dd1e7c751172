/** Logs why something could not be read. The page receives no reason: it might name a server. */
export type OnProblem = (error: unknown, what: string) => void;

/** The same problem is logged again after this time. */
const AGAIN_AFTER_MS = 30_000;

/** Passes on each problem at most once in a while. */
export function seldom(log: OnProblem): OnProblem {
  const loggedAt = new Map<string, number>();
  return (error, what) => {
    const now = Date.now();
    if (now - (loggedAt.get(what) ?? 0) < AGAIN_AFTER_MS) return;
    if (loggedAt.size > 1_000) loggedAt.clear();
    loggedAt.set(what, now);
    log(error, what);
  };
}
