import { quantile } from 'simple-statistics';
import { BUSY_AT_MOST, type Setting } from './assumptions.js';
import type { Costs } from './costs.js';
import { type Called, Fleet } from './fleet.js';

export type Bound = 'handlers' | 'queue slot' | 'request slots' | 'workers’ CPU';

export interface Simulated {
  readonly setting: Setting;
  /** Sub-requests a second with masters that may be busy all the time. */
  readonly perSecond: number;
  /** The same with no master busier than BUSY_AT_MOST: what to plan with. */
  readonly sustainable: number;
  readonly bound: Bound;
  /** Busy share of each master. */
  readonly busy: readonly number[];
  /** CPU time of all masters per sub-request. */
  readonly masterMicros: number;
  /** Share of its master that the queue's own slot takes, without ticks. */
  readonly queueBusy: number;
  /** Time from the end of a handler to the start of the next in its slot. */
  readonly meanWaitMs: number;
  readonly p99WaitMs: number;
  /** Calls of each kind per sub-request. */
  readonly calls: Readonly<Record<Called, number>>;
}

export interface Effort {
  /** Sub-requests that are counted, at least. */
  readonly settled: number;
  /** Most events of one simulation, half of them before counting begins. */
  readonly events: number;
}

/** So many workers are simulated first; if they saturate a master, more of them only wait longer. */
const POPULATIONS = [300, 3_000] as const;
const SATURATED = 0.98;
/** How often every slot is filled anew before counting begins, so that queues are as long as they get. */
const TURNS_BEFORE = 3;

export function simulate(setting: Setting, costs: Costs, effort: Effort): Simulated {
  const { workers, concurrency, handlerMs } = setting;
  for (const population of POPULATIONS) {
    if (population >= workers) break;
    const some = simulateSome(setting, costs, effort, population);
    if (Math.max(...some.busy) < SATURATED) continue;
    // Little's law: slots = throughput · (handler + wait).
    const meanWaitMs = ((workers * concurrency) / some.perSecond) * 1_000 - handlerMs;
    const p99WaitMs = some.p99WaitMs * (meanWaitMs / some.meanWaitMs);
    return { ...some, meanWaitMs, p99WaitMs };
  }
  return simulateSome(setting, costs, effort, workers);
}

function simulateSome(
  setting: Setting,
  costs: Costs,
  effort: Effort,
  population: number,
): Simulated {
  const fleet = new Fleet(setting, costs, population);
  const slots = population * setting.concurrency;
  const slicesMs = 4 * setting.quantumMs;
  const before = Math.max(effort.settled, TURNS_BEFORE * slots);
  fleet.run(before, Math.max(slicesMs, 2 * setting.handlerMs), effort.events / 2);
  fleet.reset();
  const counting = Math.max(effort.settled, slots);
  fleet.run(counting, Math.max(slicesMs, setting.handlerMs), effort.events / 2);

  const counted = fleet.counted();
  // Too few events: nothing is known.
  const perSecond = (counted.settled / counted.elapsedMs) * 1_000 || Number.NaN;
  const busiest = Math.max(...counted.busy);
  const each = (calls: number) => calls / Math.max(1, counted.settled);
  const { settle, 'should-yield': shouldYield, pop, enter, push } = counted.calls;
  return {
    setting,
    perSecond,
    sustainable: perSecond * Math.min(1, BUSY_AT_MOST / busiest),
    bound: boundOf(setting, costs, { ...counted, perSecond, busiest }),
    busy: counted.busy,
    masterMicros: (counted.busy.reduce((total, share) => total + share, 0) / perSecond) * 1e6,
    queueBusy: Math.min(counted.busy[counted.queueMaster] ?? 0, counted.queueBusy),
    meanWaitMs: counted.meanWaitMs,
    p99WaitMs: counted.waits.length > 0 ? quantile(counted.waits, 0.99) : 0,
    calls: {
      settle: each(settle),
      'should-yield': each(shouldYield),
      pop: each(pop),
      enter: each(enter),
      push: each(push),
    },
  };
}

/** What would have to grow for more to be done. */
function boundOf(
  setting: Setting,
  costs: Costs,
  counted: ReturnType<Fleet['counted']> & { perSecond: number; busiest: number },
): Bound {
  const { busy, queueBusy, queueMaster, busiest } = counted;
  if (busiest > BUSY_AT_MOST) {
    const own = queueMaster === busy.indexOf(busiest) && queueBusy > busiest / 2;
    return own ? 'queue slot' : 'request slots';
  }
  const { perOutcomeMicros, perTurnMicros } = costs.client;
  const calls = Object.values(counted.calls).reduce((sum, n) => sum + n, 0) / counted.settled;
  const clientMicros = perOutcomeMicros + calls * perTurnMicros;
  const clientShare = (counted.perSecond / setting.workers) * (clientMicros / 1e6);
  return clientShare > BUSY_AT_MOST ? 'workers’ CPU' : 'handlers';
}
