/** How many of the spans `{ startMs, endMs }` ran at the same time, at most. */
export function greatestOverlap(spans) {
  const changes = spans.flatMap(({ startMs, endMs }) => [
    { atMs: startMs, by: 1 },
    { atMs: endMs, by: -1 },
  ]);
  // Of two at the same time the end comes first.
  changes.sort((a, b) => a.atMs - b.atMs || a.by - b.by);
  let running = 0;
  let greatest = 0;
  for (const { by } of changes) {
    running += by;
    greatest = Math.max(greatest, running);
  }
  return greatest;
}
