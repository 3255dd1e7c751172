import type {
  Chart,
  ErrorsView,
  OverviewView,
  RequestsView,
  RequestView,
  Row,
  Sort,
  State,
  WorkersView,
} from '@piecework/views';

/** A view with its chart. */
export type DrawnOverview = OverviewView & { readonly chart: Chart };
export type DrawnRequest = RequestView & { readonly chart: Chart };

/** What is on the screen. */
export type Screen = 'queue' | 'request' | 'workers' | 'errors' | 'findings' | 'help';

/** A line at the bottom that waits for keys. */
export type Prompt =
  | { readonly kind: 'filter'; readonly text: string; readonly before: string }
  | {
      readonly kind: 'limit';
      readonly id: string;
      readonly now: number | null;
      readonly text: string;
      readonly wrong: string;
    }
  | { readonly kind: 'redrive'; readonly id: string; readonly failed: number };

/** What the person who looks has chosen. */
export interface Choice {
  readonly screen: Screen;
  /** The screen before help. */
  readonly behind: Screen;
  /** The request that is selected in the table, and its place: if it is no longer there, the place counts. */
  readonly selected: string;
  readonly place: number;
  /** The request that is open; '' if none is. */
  readonly opened: string;
  readonly which: State;
  readonly sort: Sort;
  readonly descending: boolean;
  readonly text: string;
  readonly page: number;
  /** The first line of a long screen that is shown. */
  readonly scroll: number;
  readonly prompt: Prompt | undefined;
}

export const FIRST_CHOICE: Choice = {
  screen: 'queue',
  behind: 'queue',
  selected: '',
  place: 0,
  opened: '',
  which: 'open',
  sort: 'created',
  descending: true,
  text: '',
  page: 1,
  scroll: 0,
  prompt: undefined,
};

/** What was read last. */
export interface Data {
  readonly overview?: DrawnOverview | undefined;
  readonly requests?: RequestsView | undefined;
  readonly request?: DrawnRequest | undefined;
  readonly workers?: WorkersView | undefined;
  readonly errors?: ErrorsView | undefined;
  /** Why the opened request cannot be shown: it was dropped or has expired. */
  readonly gone: string;
  /** When Redis answered last, in ms since 1970; 0: not yet. */
  readonly answeredAt: number;
  /** Why the last round failed; '': it did not. */
  readonly problem: string;
  /** What an action did, or why it could not be done. */
  readonly said:
    | { readonly text: string; readonly isBad: boolean; readonly at: number }
    | undefined;
}

export const NO_DATA: Data = { gone: '', answeredAt: 0, problem: '', said: undefined };

/** The request that keys act on: the one that is open, or the one that is selected. */
export function target(choice: Choice, data: Data): Row | undefined {
  if (choice.screen === 'request')
    return data.request?.row.id === choice.opened ? data.request.row : undefined;
  if (choice.screen !== 'queue') return undefined;
  const rows = data.requests?.rows ?? [];
  return rows[placeOf(choice, data)];
}

/** The same choice, in which the request that is drawn as selected is named: no other takes its place. */
export function held(choice: Choice, data: Data): Choice {
  if (choice.screen !== 'queue' || choice.selected !== '') return choice;
  const row = target(choice, data);
  return row ? { ...choice, selected: row.id, place: placeOf(choice, data) } : choice;
}

/** Where the selected request is in the page of the table. */
export function placeOf({ selected, place }: Choice, { requests }: Data): number {
  const rows = requests?.rows ?? [];
  const at = rows.findIndex(({ id }) => id === selected);
  return at >= 0 ? at : Math.max(0, Math.min(place, rows.length - 1));
}
