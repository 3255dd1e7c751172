/**
 * Tells when something has not come within `ms`, unless what it answers is called before. A loop that stood
 * still itself first reads what has arrived meanwhile: nobody else was late then.
 */
export function whenLate(ms: number, tell: () => void): () => void {
  let came = false;
  const look = () => {
    if (!came) tell();
  };
  const timer = setTimeout(() => setImmediate(look), ms);
  return () => {
    came = true;
    clearTimeout(timer);
  };
}
