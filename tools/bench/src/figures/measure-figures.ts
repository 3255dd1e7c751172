import type { MeasuredFigure } from '../figure/figure.js';
import { type FigureChoice, Fixture, type Size } from '../fixture/fixture.js';
import type { SeriesSettings, Server } from '../series.js';
import { type FigureName, figures } from './index.js';

/** One figure after the other, each on an empty server. */
export async function measureFigures(
  names: readonly FigureName[],
  server: Server,
  settings: SeriesSettings,
  size: Size,
  onStatus: (text: string) => void,
  choice: FigureChoice,
): Promise<MeasuredFigure[]> {
  const measured: MeasuredFigure[] = [];
  for (const name of names) {
    onStatus(`figure: ${name}`);
    const { measure, ...about } = figures[name];
    const startMs = performance.now();
    await server.probe.flushall();
    await using fixture = new Fixture(server, settings, size, onStatus, choice);
    const rows = await measure(fixture);
    const seconds = (performance.now() - startMs) / 1_000;
    measured.push({ name, ...about, rows, seconds });
  }
  await server.probe.flushall();
  return measured;
}
