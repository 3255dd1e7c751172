import type { Row } from '../figure/figure.js';
import { medianRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import {
  type FleetContenderName,
  fleetContenderNames,
  fleetContenders,
} from './fleet-contender.js';
import { type FleetRun, runFleet } from './fleet-run.js';

const FLEET = { workers: 40, slots: 5, handlerMs: 50, requests: 1 };
const SLOWNESS = 4;

/** How long a short request takes if one worker is slower than the others, against perfect sharing. */
export async function measureMakespan(fixture: Fixture): Promise<Row[]> {
  const count = fixture.of(2_000, 2_000, 400);
  const names = fleetContenderNames.filter((name) => fixture.choice.only.includes(name));
  const variants = Object.fromEntries(
    names.map((name) => [
      name,
      () => runFleet(fixture, name, FLEET, count, { firstSlowness: SLOWNESS }),
    ]),
  ) as Record<FleetContenderName, () => Promise<FleetRun>>;
  const runs: Partial<Record<FleetContenderName, FleetRun[]>> = await fixture.inTurn(variants);
  return fleetContenderNames.flatMap((name) => {
    const all = runs[name];
    if (!all) return [];
    const label = (text: string) =>
      `makespan of ${count}, one of 40 × 5 four times slower: ${fleetContenders[name].title}${text}`;
    const ratios = all.map(({ elapsedMs, perfectMs }) => elapsedMs / perfectMs);
    const target = name === 'piecework' ? { target: { atMost: 1.1 } } : {};
    return [
      medianRow(label(' ÷ perfect sharing'), '×', ratios, target),
      medianRow(
        label(''),
        'ms',
        all.map(({ elapsedMs }) => elapsedMs),
      ),
      medianRow(
        label(', shared perfectly'),
        'ms',
        all.map(({ perfectMs }) => perfectMs),
      ),
    ];
  });
}
