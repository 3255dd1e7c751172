/*
 * Which releases have all known security fixes. This matters here, as every client of Piecework may send scripts,
 * and most flaws found since 2024 need no more than that.
 *
 * State of 2026-09-21, from the makers' release notes as far as they were announced:
 *   Redis: 7.2.16, 7.4.11, 8.2.9, 8.4.6, 8.6.6, 8.8.2, 8.10.1 of August 2026 (docker-library/official-images
 *     #22078, #21922; after CVE-2025-49844, a script may run code of its own on the server's machine,
 *     CVE-2026-23479 and CVE-2026-23631). 7.0 and 8.0 were not among them. Then 8.2.10, 8.6.7, 8.8.3 and 8.10.2
 *     of September 2026 (cluster and ACL; docker-library/official-images #22312).
 *   Valkey: 7.2.14, 8.0.10, 8.1.9, 9.0.5, 9.1.1 of July 2026 (CVE-2026-56684, CVE-2026-63639).
 * A distribution may have put a fix into an older number; the number does not show it.
 */

export const STATE_OF = '2026-09-21';

type Line = readonly [line: string, fixed: string | 'ended'];

const LINES: Readonly<Record<'Redis' | 'Valkey', readonly Line[]>> = {
  Redis: [
    ['7.0', 'ended'],
    ['7.2', '7.2.16'],
    ['7.4', '7.4.11'],
    ['8.0', 'ended'],
    ['8.2', '8.2.10'],
    ['8.4', '8.4.6'],
    ['8.6', '8.6.7'],
    ['8.8', '8.8.3'],
    ['8.10', '8.10.2'],
  ],
  Valkey: [
    ['7.2', '7.2.14'],
    ['8.0', '8.0.10'],
    ['8.1', '8.1.9'],
    ['9.0', '9.0.5'],
    ['9.1', '9.1.1'],
  ],
};

const numbers = (version: string) => version.split('.').map((part) => Number.parseInt(part, 10));

export function isOlder(version: string, than: string): boolean {
  const [mine, other] = [numbers(version), numbers(than)];
  for (const [i, part] of other.entries()) {
    const own = mine[i] ?? 0;
    if (own !== part) return own < part;
  }
  return false;
}

/**
 * 'fixed': it has all known fixes. 'ended': its line gets no fixes. 'unknown': nothing is known of its line.
 * Otherwise the release to upgrade to.
 */
export function securityState(
  product: 'Redis' | 'Valkey',
  version: string,
): 'fixed' | 'ended' | 'unknown' | { readonly to: string } {
  const line = numbers(version).slice(0, 2).join('.');
  const fixed = LINES[product].find(([known]) => known === line)?.[1];
  if (fixed === undefined) return 'unknown';
  if (fixed === 'ended') return 'ended';
  return isOlder(version, fixed) ? { to: fixed } : 'fixed';
}
