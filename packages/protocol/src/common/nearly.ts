/** Whether the words differ by one character: one too many, one missing, one replaced, or two swapped. */
export function isNearly(given: string, name: string): boolean {
  if (given === name) return false;
  let same = 0;
  while (same < given.length && given[same] === name[same]) same += 1;
  const [a, b] = [given.slice(same), name.slice(same)];
  const changedOver = a[0] === b[1] && a[1] === b[0] && a.slice(2) === b.slice(2);
  return a.slice(1) === b || a === b.slice(1) || a.slice(1) === b.slice(1) || changedOver;
}
