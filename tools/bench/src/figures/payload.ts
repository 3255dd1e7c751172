import type { Figure, Row } from '../figure/figure.js';
import { medianRow, ratioRow } from '../figure/rows.js';
import { REPOSITORY } from '../machine.js';
import { entrantsOf, measureSeries } from '../series.js';
import { summarise } from '../summary.js';

const ENTRANTS = ['piecework', 'bare-results', 'bullmq-bulk'] as const;
const BYTES = 10_240;
const SIZES = [100, 1_000, BYTES, 102_400];
/** Bytes of all payloads of a run, at most: they are in Redis twice, as payloads and as results. */
const MOST_BYTES = 100e6;

/** Where payloads and results are large, what counts is how often their bytes are touched. */
export const payload: Figure = {
  title: 'Payloads and results of 10 KB',
  definition:
    'Sub-requests a second whose result is as long as the payload, beside bare commands that move and parse the same bytes, by length.',
  method:
    'As the table of rates: each run in a process of its own, in turn, the same payloads, each result exactly once. The handler returns its payload, the reader parses each result. The bare commands: XADD, XREADGROUP COUNT 100, XADD of the result, XACK, XTRIM, XREAD of the results, in pipelines.',
  target: `10 KB: ≥ 0.8 × the rate of the bare commands`,

  async measure(fixture): Promise<Row[]> {
    const { server, settings, say } = fixture;
    const rows: Row[] = [];
    for (const payloadBytes of SIZES) {
      const bytes = fixture.of(MOST_BYTES, MOST_BYTES / 4, MOST_BYTES / 100);
      const count = Math.min(fixture.of(20_000, 4_000, 100), Math.ceil(bytes / payloadBytes));
      const warmUpCount = Math.min(settings.warmUpCount, Math.ceil(count / 4));
      const series = { ...settings, count, warmUpCount, payloadBytes, echoes: true };
      const measured = await measureSeries(server, entrantsOf(ENTRANTS, REPOSITORY), series, say);
      rows.push(...rowsOf(payloadBytes, measured.map(summarise)));
    }
    return rows;
  },
};

function rowsOf(bytes: number, summaries: readonly ReturnType<typeof summarise>[]): Row[] {
  const [own, bare] = summaries;
  if (!own || !bare) throw new Error('as many summaries as entrants');
  const label = `${bytes.toLocaleString('en-US')} bytes`;
  const target = bytes === BYTES ? { atLeast: 0.8 } : undefined;
  return [
    ratioRow(`${label}: rate ÷ bare`, own.perSecond.each, bare.perSecond.each, target),
    ratioRow(`${label}: client CPU ÷ bare`, own.clientMicros.each, bare.clientMicros.each),
    ratioRow(`${label}: Redis CPU ÷ bare`, own.redisMicros.each, bare.redisMicros.each),
    ...summaries.flatMap(({ entrant, perSecond, redisMicros, clientMicros }) => [
      medianRow(`${label}: ${entrant.title}`, 'sub-requests/s', perSecond.each),
      medianRow(`${label}: ${entrant.title}`, 'µs of Redis', redisMicros.each),
      medianRow(`${label}: ${entrant.title}`, 'µs of the client', clientMicros.each),
    ]),
  ];
}
