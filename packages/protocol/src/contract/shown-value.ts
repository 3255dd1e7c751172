/** Removes passwords, because URLs in errors reach logs. A password may contain @ and /, so it ends at the last @. */
export function withoutPassword(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  return value
    .replace(/:\/\/(?:(?!,rediss?:\/\/)\S){0,1000}@/g, '://…@')
    .replace(/(sentinelPassword=)[^&\s]*/g, '$1…');
}

const A_FUNCTION = 'a function';

/** A value as a message shows it: short and on one line, so that no payload fills a log. */
export function show(value: unknown): string {
  if (typeof value === 'function') return A_FUNCTION;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol' || typeof value === 'number') return String(value);
  let text: string | undefined;
  try {
    // JSON would leave functions out.
    text = JSON.stringify(value, (_, part) => (typeof part === 'function' ? A_FUNCTION : part));
    text = text?.replaceAll(JSON.stringify(A_FUNCTION), A_FUNCTION);
  } catch {
    text = undefined;
  }
  try {
    text ??= String(value);
  } catch {
    text = 'a value that throws when it is read';
  }
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
