/*
 * What attempts cost, as JSON: µs for which their handlers ran, how many attempts they were, and what they used, a name
 * and a number each; of one attempt that used nothing only µs. A worker sends it for each outcome, and the state of a
 * request keeps the sum (lua/lib/cost.lua).
 */

/** What a request has cost so far, over all its generations. */
export interface RequestCost {
  /**
   * Sum of the times for which its handlers ran, in ms with three decimals: of attempts that succeeded, failed or were
   * given back. The time of an attempt whose worker was killed is not known.
   */
  readonly handlerMs: number;
  /**
   * How many attempts there were: those that succeeded, those that failed, and one for each sub-request that a worker
   * had when it was killed, or lost its lease otherwise.
   */
  readonly attempts: number;
  /** What its handlers passed to `context.usage`, added up by name; `other`: all names beyond the first 20. */
  readonly usage: Readonly<Record<string, number>>;
}

/** Sums of what one attempt used, by name. */
export type Usage = ReadonlyMap<string, number>;

/** `attempts`: 0 for one that was given back. */
export function costText(handlerMs: number, attempts: 0 | 1, usage?: Usage): string {
  const us = Math.max(0, Math.round(handlerMs * 1_000));
  if (attempts === 1 && !usage) return String(us);
  return JSON.stringify([us, attempts, ...[...(usage ?? [])].flat()]);
}

/** The cost of what was read but not started. */
export const NO_COST = '[0,0]';

/** `text`: as the state has it; nothing: no attempt has ended. */
export function decodeCost(text: string = NO_COST): RequestCost {
  const [us, attempts, ...pairs] = JSON.parse(text) as [number, number, ...(string | number)[]];
  const usage: [string, number][] = [];
  for (let i = 0; i < pairs.length; i += 2)
    usage.push([pairs[i] as string, withoutNoise(pairs[i + 1] as number)]);
  return { handlerMs: us / 1_000, attempts, usage: Object.fromEntries(usage) };
}

/** Sums of fractions have noise in their last digits: 0.009000000000000001. */
const withoutNoise = (n: number) => (Number.isInteger(n) ? n : Number(n.toPrecision(15)));
