/** What the doctor checks. */
export type Check =
  | (
      | 'repair'
      | 'version'
      | 'commands'
      | 'memory'
      | 'persistence'
      | 'replicas'
      | 'cluster'
      | 'clocks'
    )
  | ('acl' | 'queue' | 'workers' | 'parked' | 'agenda' | 'books' | 'tokens' | 'running')
  | 'orphans';

/** All checks, in the order of the findings. */
export const CHECKS: readonly Check[] = [
  ...([
    'repair',
    'version',
    'commands',
    'memory',
    'persistence',
    'replicas',
    'cluster',
    'clocks',
  ] as const),
  ...(['acl', 'queue', 'workers', 'parked', 'agenda', 'books', 'tokens', 'running'] as const),
  'orphans',
];

/** One thing that the doctor found. */
export interface Finding {
  /** 'warning': it works, but perhaps not for long. 'error': something is lost, stuck or about to be. */
  readonly level: 'ok' | 'warning' | 'error';
  readonly check: Check;
  /** What was found, in words. */
  readonly what: string;
  /** What to do; '' when there is nothing to do. */
  readonly advice: string;
}

export const ok = (check: Check, what: string): Finding => ({
  level: 'ok',
  check,
  what,
  advice: '',
});

export const warning = (check: Check, what: string, advice: string): Finding => ({
  level: 'warning',
  check,
  what,
  advice,
});

export const error = (check: Check, what: string, advice: string): Finding => ({
  level: 'error',
  check,
  what,
  advice,
});

/** How many ids one finding names. */
const NAMED = 10;

/** 'a, b, c and 4 more' */
export function some(names: readonly string[]): string {
  const more = names.length - NAMED;
  const named = names.slice(0, NAMED).join(', ');
  return more > 0 ? `${named} and ${more} more` : named;
}

/** '1 request', '2 requests' */
export const many = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;

/** '1.5 MB' */
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
