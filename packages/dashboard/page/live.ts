import type { ChartView, Point, Refusal, Shell } from '@piecework/views';
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';

/** Whether the page shows what is, for the sign at the top. */
export const connection = signal<'live' | 'connecting' | 'away' | 'signed out'>('connecting');

export interface Live<T> {
  readonly data: T | undefined;
  /** The chart of the view, if it has one: its points come apart. */
  readonly chart: Drawn;
  readonly problem: Refusal['error'] | undefined;
}

/** A chart as far as its points have come. */
export type Drawn = Pick<ChartView, 'from' | 'intervalMs' | 'points'>;
const NOT_DRAWN: Drawn = { from: 'here', intervalMs: 1_000, points: [] };

function drawn(before: Drawn, { from, intervalMs, begins, whole, points }: ChartView): Drawn {
  const all = new Map<number, Point>();
  for (const point of whole ? points : [...before.points, ...points])
    if (point.at >= begins) all.set(point.at, point);
  return { from, intervalMs, points: [...all.values()].sort((a, b) => a.at - b.at) };
}

/** A page that nobody sees stops asking after this time. */
const HIDDEN_MS = 20_000;
const AGAIN_MS = 3_000;

/** The view of these parameters, as it changes. */
export function useLive<T>(params: Readonly<Record<string, string>>): Live<T> {
  const query = new URLSearchParams(params).toString();
  const [live, setLive] = useState<Live<T> & { query: string }>({
    query,
    data: undefined,
    chart: NOT_DRAWN,
    problem: undefined,
  });
  useEffect(() => {
    let source: EventSource | undefined;
    let timer: number | undefined;
    const left = new AbortController();
    const path = `api/events?${query}`;
    // The answer to another question has nothing to do with this one.
    const of = (before: Live<T> & { query: string }) =>
      before.query === query
        ? before
        : { query, data: undefined, chart: NOT_DRAWN, problem: undefined };
    const open = () => {
      if (source) return;
      connection.value = 'connecting';
      const made = new EventSource(urlOf(path));
      source = made;
      made.addEventListener('view', ({ data }) => {
        connection.value = 'live';
        const view = JSON.parse(data) as T;
        setLive((before) => ({ ...of(before), data: view, problem: undefined }));
      });
      made.addEventListener('chart', ({ data }) => {
        const news = JSON.parse(data) as ChartView;
        setLive((before) => ({ ...of(before), chart: drawn(of(before).chart, news) }));
      });
      made.addEventListener('problem', ({ data }) => {
        connection.value = 'live';
        const problem = JSON.parse(data) as Refusal['error'];
        setLive((before) => ({ ...before, query, problem }));
      });
      made.addEventListener('error', () => {
        connection.value = 'away';
        // The browser tries again by itself, unless the answer was an error.
        if (made.readyState !== EventSource.CLOSED) return;
        close();
        void askWhy(path).then((why) => {
          if (why && !left.signal.aborted) setLive((before) => ({ ...of(before), problem: why }));
        });
        timer = window.setTimeout(open, AGAIN_MS);
      });
    };
    const close = () => {
      source?.close();
      source = undefined;
    };
    const onVisibility = () => {
      clearTimeout(timer);
      if (document.hidden) timer = window.setTimeout(close, HIDDEN_MS);
      else open();
    };
    open();
    document.addEventListener('visibilitychange', onVisibility);
    return () => {
      left.abort();
      document.removeEventListener('visibilitychange', onVisibility);
      clearTimeout(timer);
      close();
    };
  }, [query]);
  // What was asked before is not the answer to this question; a changed search keeps its rows until the next come.
  const isOther =
    live.query !== query &&
    (params['view'] !== 'requests' || !live.query.startsWith('view=requests'));
  return isOther ? { data: undefined, chart: NOT_DRAWN, problem: undefined } : live;
}

/** Without the user and the password that the address of the page may have: `fetch` refuses those. */
const urlOf = (path: string) => new URL(path, location.origin + location.pathname);

/** Asks once more: an EventSource does not say why it was refused. @returns undefined if the page should only try again */
async function askWhy(path: string): Promise<Refusal['error'] | undefined> {
  const asked = new AbortController();
  try {
    const response = await fetch(urlOf(path), { signal: asked.signal });
    if (response.ok) return undefined;
    const { status, code, message } = await refusalOf(response);
    if (status !== 401) return { code, message };
    connection.value = 'signed out';
  } catch {
    // The server is away.
  } finally {
    // An answer that is a stream has no end.
    asked.abort();
  }
  return undefined;
}

async function refusalOf(response: Response): Promise<Refused> {
  const { error } = (await response.json().catch(() => ({}))) as Partial<Refusal>;
  const unknown = { code: 'REFUSED', message: `The server answered ${response.status}.` };
  return new Refused(response.status, error ?? unknown);
}

/** The server refused, and said why. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, { code, message }: Refusal['error']) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** @throws Refused · TypeError when the server does not answer */
export async function ask<T>(path: string, body?: object): Promise<T> {
  const post = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  const response = await fetch(urlOf(path), body === undefined ? {} : post);
  if (!response.ok) throw await refusalOf(response);
  return (await response.json()) as T;
}

/** What the page was told at its start. */
export const shell = signal<Shell | undefined>(undefined);
export const shellProblem = signal('');

export async function loadShell(): Promise<void> {
  try {
    shell.value = await ask<Shell>('api/shell');
    shellProblem.value = '';
  } catch (error) {
    shellProblem.value = error instanceof Refused ? error.message : 'The server does not answer.';
    window.setTimeout(() => void loadShell(), AGAIN_MS);
  }
}

/** The clock, in steps of a second: times that are shown as 'ago'. */
export const clock = signal(Date.now());
setInterval(() => {
  if (!document.hidden) clock.value = Date.now();
}, 1_000);
