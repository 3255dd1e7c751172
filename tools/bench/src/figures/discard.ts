import type { Figure, Row } from '../figure/figure.js';
import { medianRow, ratioRow } from '../figure/rows.js';
import { REPOSITORY } from '../machine.js';
import { entrantsOf, measureSeries } from '../series.js';
import { summarise } from '../summary.js';

const ENTRANTS = ['piecework-discard', 'bare-xtrim'] as const;

/** How near the whole queue comes to the commands that it stands on. */
export const discard: Figure = {
  title: 'Rate, results not read',
  definition:
    'Sub-requests a second from the call that submits to the completion, results discarded, beside bare pipelined XADD, XREADGROUP COUNT 100, XACK, XTRIM.',
  method:
    'As the table of rates: each run in a process of its own, in turn, the same number of payloads; what the handlers saw is counted and has to be everything once.',
  target: '≥ 1.1 × the bare commands',

  async measure({ server, settings, say }): Promise<Row[]> {
    const measured = await measureSeries(server, entrantsOf(ENTRANTS, REPOSITORY), settings, say);
    const [own, bare] = measured.map(summarise);
    if (!own || !bare) throw new Error('two entrants, two summaries');
    const rate = 'sub-requests/s';
    return [
      medianRow(own.entrant.title, rate, own.perSecond.each),
      medianRow(bare.entrant.title, rate, bare.perSecond.each),
      ratioRow('Piecework ÷ bare', own.perSecond.each, bare.perSecond.each, { atLeast: 1.1 }),
      medianRow('Redis, Piecework', 'CPU µs', own.redisMicros.each),
      medianRow('Redis, bare', 'CPU µs', bare.redisMicros.each),
      medianRow('client, Piecework', 'CPU µs', own.clientMicros.each),
      medianRow('client, bare', 'CPU µs', bare.clientMicros.each),
    ];
  },
};
