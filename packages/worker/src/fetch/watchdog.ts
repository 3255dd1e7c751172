/**
 * Calls `onLate` after `ms`, unless the function that it returns is called before. An event loop that was blocked
 * first reads what has arrived meanwhile: then only the loop itself was late.
 */
export function whenLate(ms: number, onLate: () => void): () => void {
  let came = false;
  const check = () => {
    if (!came) onLate();
  };
  const timer = setTimeout(() => setImmediate(check), ms);
  return () => {
    came = true;
    clearTimeout(timer);
  };
}
