import { fine, type Table, whole } from '../tables.js';
import { BUSY_AT_MOST, HANDLER_MS, MASTERS, WORKERS } from './assumptions.js';
import { idleShare } from './background.js';
import { type Check, callsPerOutcome, errorOf, microsPerOutcome } from './check.js';
import type { Costs } from './costs.js';
import { QUEUE_CALLS, REQUEST_CALLS } from './costs.js';
import { FEW_REQUESTS } from './grid.js';
import type { Bound, Simulated } from './simulate.js';

const MARKS: Record<Bound, string> = {
  handlers: 'h',
  'queue slot': 'q',
  'request slots': 'r',
  'workers’ CPU': 'c',
};
const percent = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
const signed = (share: number): string => `${share < 0 ? '−' : '+'}${percent(Math.abs(share))}`;
const sum = (numbers: readonly number[]) => numbers.reduce((total, n) => total + n, 0);

export function costsTable({ server }: Costs): Table {
  const rows = [...REQUEST_CALLS, ...QUEUE_CALLS].map((name) => {
    const side = QUEUE_CALLS.some((queue) => queue === name) ? 'queue' : 'request';
    const { micros, insideMicros, calls } = server[name];
    return [name, side, fine(micros), fine(insideMicros), whole(calls)];
  });
  return { head: ['call', 'hash slot', 'CPU µs', 'inside µs', 'calls'], rows };
}

/** What can be planned with, and by what it is bound. */
export function throughputTable(all: readonly Simulated[], contended: boolean): Table {
  const rows = HANDLER_MS.flatMap((handlerMs) =>
    WORKERS.map((workers) => {
      const cells = MASTERS.map((masters) => {
        const found = all.find(
          ({ setting: s }) =>
            s.contended === contended &&
            s.handlerMs === handlerMs &&
            s.workers === workers &&
            s.masters === masters,
        );
        return found ? `${whole(found.sustainable)} ${MARKS[found.bound]}` : '–';
      });
      return [`${handlerMs} ms`, whole(workers), ...cells];
    }),
  );
  return { head: ['handler', 'workers', ...MASTERS.map(mastersTitle)], rows };
}

/** Load, cost and waits, on three masters. */
export function detailTable(all: readonly Simulated[]): Table {
  const head = [
    'waiting',
    'handler',
    'workers',
    'per s',
    'busiest',
    'queue slot',
    'Redis µs',
    'wait ms',
    'p99 ms',
  ];
  const rows = all
    .filter(({ setting }) => setting.masters === 3)
    .map(({ setting, ...found }) => [
      setting.contended ? 'yes' : 'no',
      `${setting.handlerMs} ms`,
      whole(setting.workers),
      whole(found.perSecond),
      percent(Math.max(...found.busy)),
      percent(found.queueBusy),
      fine(found.masterMicros),
      fine(found.meanWaitMs),
      fine(found.p99WaitMs),
    ]);
  return { head, rows };
}

export function requestsTable(all: readonly Simulated[]): Table {
  const rows = FEW_REQUESTS.map((requests) => [
    whole(requests),
    ...MASTERS.map((masters) => {
      const found = all.find(({ setting: s }) => s.requests === requests && s.masters === masters);
      return found ? `${whole(found.sustainable)} ${MARKS[found.bound]}` : '–';
    }),
  ]);
  return { head: ['live requests', ...MASTERS.map(mastersTitle)], rows };
}

export function idleTable(costs: Costs): Table {
  const rows = WORKERS.map((workers) => [whole(workers), percent(idleShare(workers, costs))]);
  return { head: ['idle workers', 'of the queue’s master'], rows };
}

export function callsTable(checks: readonly Check[]): Table {
  const [first] = checks;
  const names = first ? callsPerOutcome(first).map(({ name }) => name) : [];
  const rows = checks.map((check) => [
    ...about(check),
    ...callsPerOutcome(check).map(
      ({ counted, simulated }) => `${fine(counted)} / ${fine(simulated)}`,
    ),
  ]);
  return { head: [...ABOUT, ...names], rows };
}

export function checkTable(checks: readonly Check[]): Table {
  const rows = checks.map((check) => {
    const { real, simulated } = check;
    const masters = microsPerOutcome(check);
    const measured = sum(masters.map((master) => master.measured));
    const expected = sum(masters.map((master) => master.simulated));
    const each = masters.map((master) => `${fine(master.measured)} / ${fine(master.simulated)}`);
    const perSecond = (real.settled / real.elapsedMs) * 1_000;
    const pace =
      real.setting.handlerMs < 50
        ? `${whole(perSecond)} (client-bound)`
        : `${whole(perSecond)} / ${whole(simulated.perSecond)} (${signed(errorOf(perSecond, simulated.perSecond))})`;
    return [...about(check), each.join(' · '), signed(errorOf(measured, expected)), pace];
  });
  return { head: [...ABOUT, 'µs of each master', 'error of the sum', 'sub-requests/s'], rows };
}

const ABOUT = ['masters', 'workers', 'handler', 'requests'];

function about({ real: { setting } }: Check): string[] {
  const { masters, workers, handlerMs, requests } = setting;
  return [String(masters), String(workers), `${handlerMs} ms`, String(requests)];
}

const mastersTitle = (masters: number) => (masters === 1 ? '1 master' : `${masters} masters`);

export const LEGEND = `Sub-requests a second with no master busier than ${BUSY_AT_MOST * 100} %. Bound by: h handlers and slots, q the queue’s hash slot, r the requests’ hash slots, c the workers’ CPU.`;
