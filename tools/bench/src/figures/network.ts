import type { Figure, Row } from '../figure/figure.js';
import { medianRow } from '../figure/rows.js';
import { measureShape } from '../fleet/measure-shape.js';
import { isWanted, labelOf, nameOf, type Shape } from '../fleet/shape.js';
import { DelayingProxy } from '../network/delaying-proxy.js';
import { RoundTrips } from '../network/round-trips.js';

const DELAY_MS = 1;
const TARGETS = { ofIdeal: 0.97, redis: 0.4, client: 0.4 };

const SHAPES: Shape[] = [1, 4].map((workers) => ({
  ...{ workers, slots: 10, handlerMs: 5, requests: 1 },
  targets: TARGETS,
}));

/** The rows that `--rows` can name. */
export const networkRowNames = SHAPES.map(nameOf);

/** What a round trip costs workers whose handlers are about as short. */
export const network: Figure = {
  title: 'Workers behind a network, beside BullMQ flows',
  definition:
    'As in the figure `fleet`: the rate over that of perfect sharing, and CPU per sub-request over that of BullMQ flows.',
  method: `As in the figure \`fleet\`, but the workers reach Redis through a TCP proxy that delays each direction by ${DELAY_MS} ms; the producer does not. The round trip is that of PING through the proxy, measured every 50 ms during all rounds of a row.`,
  target: 'rate ≥ 0.97 of ideal; Redis CPU and client CPU ≤ 0.4 × BullMQ',

  async measure(fixture): Promise<Row[]> {
    const { host, port } = fixture.server;
    await using proxy = await DelayingProxy.start({ host, port, delayMs: DELAY_MS });
    const rows: Row[] = [];
    for (const shape of SHAPES) {
      if (!isWanted(nameOf(shape), fixture.choice.rows)) continue;
      const roundTrips = new RoundTrips(proxy);
      rows.push(...(await measureShape(fixture, shape, { redis: proxy })));
      const pingMs = await roundTrips.close();
      fixture.say(`  PING ${pingMs.toFixed(2)} ms`);
      rows.push(medianRow(`${labelOf(shape)}: PING through the proxy`, 'ms', [pingMs]));
    }
    return rows;
  },
};
