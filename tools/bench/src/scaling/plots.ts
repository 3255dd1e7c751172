import { parse, View } from 'vega';
import vegaLite, { type TopLevelSpec } from 'vega-lite';
import type { Simulated } from './simulate.js';

/** File name → SVG. */
export type Plots = Readonly<Record<string, string>>;

export async function plots(
  usual: readonly Simulated[],
  few: readonly Simulated[],
): Promise<Plots> {
  return {
    'throughput.svg': await draw(throughput(usual)),
    'queue-slot.svg': await draw(queueSlot(usual)),
    'requests.svg': await draw(requests(few)),
  };
}

async function draw(spec: TopLevelSpec): Promise<string> {
  const view = new View(parse(vegaLite.compile(spec).spec), { renderer: 'none' });
  return `${await view.toSVG()}\n`;
}

const LOGARITHMIC = { type: 'log' } as const;
const LINE = { type: 'line', point: true } as const;

const rowsOf = (all: readonly Simulated[]) =>
  all.map(({ setting, sustainable, queueBusy }) => ({
    sustainable,
    queueBusy: queueBusy * 100,
    workers: setting.workers,
    masters: String(setting.masters),
    requests: setting.requests,
    handler: setting.handlerMs,
    others: setting.contended ? 'others wait' : 'nobody waits',
  }));

const masters = { field: 'masters', type: 'nominal', sort: null, title: 'masters' } as const;
const workers = { field: 'workers', type: 'quantitative', scale: LOGARITHMIC } as const;

function throughput(all: readonly Simulated[]): TopLevelSpec {
  return {
    background: 'white',
    data: { values: rowsOf(all) },
    facet: {
      column: { field: 'handler', type: 'ordinal', title: 'handler time, ms' },
      row: { field: 'others', type: 'nominal', title: null },
    },
    spec: {
      width: 150,
      height: 150,
      mark: LINE,
      encoding: {
        x: workers,
        y: {
          field: 'sustainable',
          type: 'quantitative',
          scale: LOGARITHMIC,
          title: 'sub-requests/s',
        },
        color: masters,
      },
    },
  };
}

function queueSlot(all: readonly Simulated[]): TopLevelSpec {
  const some = rowsOf(all).filter((row) => row.masters === '30');
  return {
    background: 'white',
    data: { values: some },
    facet: { column: { field: 'others', type: 'nominal', title: null } },
    spec: {
      width: 260,
      height: 200,
      mark: LINE,
      encoding: {
        x: workers,
        y: { field: 'queueBusy', type: 'quantitative', title: 'queue slot busy, %' },
        color: { field: 'handler', type: 'ordinal', title: 'handler, ms' },
      },
    },
  };
}

function requests(all: readonly Simulated[]): TopLevelSpec {
  return {
    background: 'white',
    data: { values: rowsOf(all) },
    width: 360,
    height: 220,
    mark: LINE,
    encoding: {
      x: { field: 'requests', type: 'quantitative', scale: LOGARITHMIC, title: 'live requests' },
      y: {
        field: 'sustainable',
        type: 'quantitative',
        scale: LOGARITHMIC,
        title: 'sub-requests/s',
      },
      color: masters,
    },
  };
}
