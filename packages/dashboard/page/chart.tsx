import type { Point } from '@piecework/views';
import { clockSeconds, clockTime, count, rate } from '@piecework/views/format';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import type { Drawn } from './live.js';
import { theme } from './theme.js';

export interface Line {
  readonly name: string;
  /** null: there is none. */
  readonly of: (point: Point) => number | null;
  /** A colour of the stylesheet, without the dashes. */
  readonly colour: string;
  readonly isFilled?: boolean;
}

/** The hour has a point each ten seconds; the first may be missing. */
const ABOUT_AN_HOUR_MS = 3_500_000;

/** What time a chart shows: it begins with its first point, which may be young. */
export function spanOf({ points, from }: Drawn): string {
  const [first] = points;
  const last = points.at(-1);
  if (!first || !last) return '';
  if (from === 'here') return `since ${clockSeconds(first.at)}`;
  return last.at - first.at >= ABOUT_AN_HOUR_MS ? 'last hour' : `since ${clockTime(first.at)}`;
}

/** Which colour is which line. */
export function Lines({
  lines,
  span,
}: {
  readonly lines: readonly Line[];
  readonly span: ComponentChildren;
}) {
  return (
    <ul class="legend">
      {lines.map(({ name, colour }) => (
        <li key={name}>
          <i class="part" style={{ background: `var(--${colour})` }} /> {name}
        </li>
      ))}
      {span ? <li>{span}</li> : null}
    </ul>
  );
}

interface ChartProps {
  readonly points: readonly Point[];
  readonly lines: readonly Line[];
  readonly label: string;
  readonly height?: number;
  readonly shows: (n: number) => string;
}

const colourOf = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Lines over time. In words for those who cannot see it. */
export function Chart({ points, lines, label, height = 132, shows }: ChartProps) {
  const at = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const tone = theme.value;
  // Drawn anew only for another theme; values come by setData.
  useEffect(() => {
    const element = at.current as HTMLDivElement;
    const made = new uPlot(
      optionsOf(element.clientWidth, height, lines, shows),
      dataOf(points, lines),
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [tone, height]);
  useEffect(() => plot.current?.setData(dataOf(points, lines)));
  const said = lines.map(({ name, of }) => {
    const values = points.map((point) => of(point) ?? 0);
    return `${name} now ${shows(values.at(-1) ?? 0)}, at most ${shows(Math.max(0, ...values))}`;
  });
  return <div class="chart" ref={at} role="img" aria-label={`${label}: ${said.join('; ')}`} />;
}

/** Seconds between two times below a chart. Whole ones: the times name no part of a second. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600];

/** Points that are further apart are not joined: nobody watched in between. */
const GAP_MS = 15_000;

function dataOf(points: readonly Point[], lines: readonly Line[]): uPlot.AlignedData {
  const times: number[] = [];
  const values: (number | null)[][] = lines.map(() => []);
  for (const [i, point] of points.entries()) {
    const before = points[i - 1];
    if (before && point.at - before.at > GAP_MS) {
      times.push((before.at + point.at) / 2_000);
      for (const line of values) line.push(null);
    }
    times.push(point.at / 1_000);
    for (const [n, { of }] of lines.entries()) values[n]?.push(of(point));
  }
  return [times, ...values];
}

function optionsOf(
  width: number,
  height: number,
  lines: readonly Line[],
  shows: (n: number) => string,
): uPlot.Options {
  const quiet = colourOf('quiet');
  const grid = { stroke: colourOf('line'), width: 1 };
  const font = '11px system-ui, sans-serif';
  const axis = { stroke: quiet, grid, ticks: { show: false }, font };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 26, 0, 0],
    scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [
      { ...axis, space: 90, size: 24, incrs: STEPS, values: (_, ticks) => timesOf(ticks) },
      { ...axis, space: 28, size: 44, values: (_, ticks) => ticks.map(shows) },
    ],
    series: [
      {},
      ...lines.map(({ name, colour, isFilled }) => ({
        label: name,
        stroke: colourOf(colour),
        width: 1.5,
        points: { show: false },
        ...(isFilled ? { fill: `${colourOf(colour)}26` } : {}),
      })),
    ],
  };
}

/** All as 14:05, or all as 14:05:20 if one of them is between full minutes. */
function timesOf(ticks: readonly number[]): string[] {
  const hasSeconds = ticks.some((seconds) => seconds % 60 !== 0);
  return ticks.map((seconds) => clockSeconds(seconds * 1_000).slice(0, hasSeconds ? 8 : 5));
}

export const showsRate = rate;
export const showsCount = count;
