import { type BulkContenderName, bulkContenders } from '../bulk/bulk-contender.js';
import { type BulkCost, type BulkRun, runBulk } from '../bulk/bulk-run.js';
import type { Figure, Row } from '../figure/figure.js';
import { medianRow, ratioRow } from '../figure/rows.js';

const CALLERS = 50;
const OWN = 'delayed-tasks';
const PEER = 'bullmq-add';
const PHASES = { adding: 'put in', working: 'run' } as const;

/** A task is a request with one sub-request; here they come in bulk. */
export const delayedTasks: Figure = {
  title: 'Delayed tasks, beside BullMQ',
  definition:
    'Tasks a second without a delay: put in by callers that do not wait for the runs, then run by one worker.',
  method: `\`DelayedTasks.executeLater\` beside BullMQ \`add\`, both by ${CALLERS} callers, each of which awaits its own call; after that, one worker in the same process, from its start to the end of the last handler. Defaults of both. CPU is counted until the queue knows that all has ended. Handlers return at once; each has to run exactly once. Each run has a process of its own, which has put in and run three times as many tasks on another queue before.`,
  target: 'both rates ≥ 1 × BullMQ',

  async measure(fixture): Promise<Row[]> {
    const units = fixture.of(20_000, 4_000, 50);
    // Until then V8 still compiles: of six runs of as many tasks in one process, the first two were slower, of both.
    const warmUpUnits = 3 * units;
    const run = (name: BulkContenderName) => () =>
      runBulk(fixture, name, { units, unitSize: 1, callers: CALLERS, warmUpUnits });
    const runs = await fixture.inTurn({ [OWN]: run(OWN), [PEER]: run(PEER) });
    return (['adding', 'working'] as const).flatMap((phase) => rowsOf(phase, runs));
  },
};

function rowsOf(
  phase: keyof BulkRun,
  runs: Record<typeof OWN | typeof PEER, readonly BulkRun[]>,
): Row[] {
  const values = (name: typeof OWN | typeof PEER, key: keyof BulkCost) =>
    runs[name].map((run) => run[phase][key]);
  const what = PHASES[phase];
  const both = (unit: string, key: keyof BulkCost) =>
    ([OWN, PEER] as const).map((name) =>
      medianRow(`${what}: ${bulkContenders[name].title}`, unit, values(name, key)),
    );
  return [
    ratioRow(`${what}: rate ÷ BullMQ`, values(OWN, 'perSecond'), values(PEER, 'perSecond'), {
      atLeast: 1,
    }),
    ...both('tasks/s', 'perSecond'),
    ...both('µs of Redis a task', 'redisMicros'),
    ...both('µs of the client a task', 'clientMicros'),
  ];
}
