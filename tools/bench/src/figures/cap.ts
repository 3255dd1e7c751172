import type { Figure, Row } from '../figure/figure.js';
import { medianRow, ratioRow } from '../figure/rows.js';
import { REPOSITORY } from '../machine.js';
import { run } from '../run.js';
import type { SpeedReport } from '../run-order.js';
import { type Entrant, entrantsOf, orderOf } from '../series.js';

const NO_CAP = 10_000;
const TIGHT = 10;
const TARGET = { atMost: 1.05 };
/** Both do the same, so any difference is noise, of a fifth from run to run. That needs many runs. */
const SERIES = 3;

/** What the limit of a request costs. */
export const cap: Figure = {
  title: 'Cost of a cap',
  definition:
    'Commands sent and Redis CPU per sub-request of the same request, with a limit that the fleet reaches over one that it never does.',
  method: `Runs as in the table of rates, in turn. Cap: limit = slots of the fleet. No cap: limit ${NO_CAP}. ${SERIES} runs of each a round. Commands are those sent; those that Redis carried out count what scripts call. Beside them, reported, a limit of ${TIGHT}: fewer end together, so each costs more.`,
  target: '≤ 1.05 × each',

  async measure(fixture): Promise<Row[]> {
    const [entrant] = entrantsOf(['piecework'], REPOSITORY) as [Entrant];
    const order = orderOf(fixture.server, entrant, fixture.settings);
    const withLimit = (limit: number) => () => run('speed', { ...order, limit });
    const runs = { cap: [] as SpeedReport[], none: [] as SpeedReport[] };
    for (let i = 0; i < SERIES; i += 1) {
      const { cap, none } = await fixture.inTurn({
        cap: withLimit(order.concurrency),
        none: withLimit(NO_CAP),
      });
      runs.cap.push(...cap);
      runs.none.push(...none);
    }
    const { tight } = await fixture.inTurn({ tight: withLimit(TIGHT) });
    const each = (reports: readonly SpeedReport[], figure: (of: SpeedReport) => number) =>
      reports.map((report) => figure(report) / report.finished);
    const sent = ({ sent }: SpeedReport) => sent;
    const carriedOut = ({ redis }: SpeedReport) => redis.commands;
    const cpu = ({ redis }: SpeedReport) => redis.cpuMicros;
    const capped = `limit ${order.concurrency}`;
    return [
      ratioRow('commands, cap ÷ none', each(runs.cap, sent), each(runs.none, sent), TARGET),
      ratioRow(
        'commands carried out, cap ÷ none',
        each(runs.cap, carriedOut),
        each(runs.none, carriedOut),
        TARGET,
      ),
      ratioRow('Redis CPU, cap ÷ none', each(runs.cap, cpu), each(runs.none, cpu), TARGET),
      medianRow(capped, 'commands', each(runs.cap, sent)),
      medianRow(`limit ${NO_CAP}`, 'commands', each(runs.none, sent)),
      medianRow(`limit ${TIGHT}`, 'commands', each(tight, sent)),
      medianRow(capped, 'Redis CPU µs', each(runs.cap, cpu)),
      medianRow(`limit ${NO_CAP}`, 'Redis CPU µs', each(runs.none, cpu)),
      medianRow(`limit ${TIGHT}`, 'Redis CPU µs', each(tight, cpu)),
    ];
  },
};
