import { percent } from '@piecework/views/format';

/** A bar of `size` characters. It is full only when the share is 1, and empty only when it is 0. */
export function bar(share: number, size: number): string {
  const filled = share >= 1 ? size : Math.min(size - 1, Math.ceil(size * Math.max(0, share) - 0.5));
  const shown = share > 0 ? Math.max(1, filled) : 0;
  return '█'.repeat(shown) + '░'.repeat(size - shown);
}

/** '██████░░░░  61 %' */
export function shareBar(part: number, whole: number, size = 10): string {
  return `${bar(whole > 0 ? part / whole : 0, size)} ${percent(part, whole).padStart(5)}`;
}
