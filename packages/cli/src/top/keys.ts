import { shownText } from '@piecework/protocol/contract';
import { SORTS, STATES } from '@piecework/views';
import { type Choice, type Data, placeOf, type Screen, target } from './state.js';

/** A key, as node:readline names it. */
export interface Key {
  readonly name?: string | undefined;
  readonly sequence?: string | undefined;
  readonly ctrl?: boolean | undefined;
  readonly meta?: boolean | undefined;
  readonly shift?: boolean | undefined;
}

/** What a key does besides changing what is shown. */
export type Effect =
  | { readonly do: 'pause' | 'resume'; readonly id: string }
  | { readonly do: 'limit'; readonly id: string; readonly limit: number | null }
  | { readonly do: 'redrive'; readonly id: string }
  | { readonly do: 'say'; readonly text: string }
  | { readonly do: 'check' | 'suspend' | 'redraw' | 'quit' | 'interrupt' };

export interface Pressed {
  readonly choice: Choice;
  readonly effect?: Effect | undefined;
}

const READ_ONLY = 'This view is read-only: it was started with --read-only.';
const MOST_LIMIT = 1_000_000;
/** Most characters of a filter. */
const LONGEST = 200;

/** What a key does. Nothing is changed yet: the effect says what the caller has to do. */
export function press(choice: Choice, data: Data, key: Key, readOnly: boolean): Pressed {
  if (key.ctrl && key.name === 'c') return { choice, effect: { do: 'interrupt' } };
  if (key.ctrl && key.name === 'z') return { choice, effect: { do: 'suspend' } };
  if (key.ctrl && key.name === 'l') return { choice, effect: { do: 'redraw' } };
  if (choice.prompt) return inPrompt(choice, key);
  const typed = key.sequence ?? '';
  switch (typed) {
    case 'q':
      return { choice, effect: { do: 'quit' } };
    case '?':
      return show(choice, 'help');
    case 'w':
      return show(choice, 'workers');
    case 'e':
      return show(choice, 'errors');
    case 'f':
      return show(choice, 'findings');
    case 'c':
      return { choice, effect: { do: 'check' } };
    case 'p':
    case 'l':
    case 'r':
      return control(choice, data, typed, readOnly);
  }
  if (key.name === 'escape' || key.name === 'backspace') return back(choice);
  if (choice.screen !== 'queue') return { choice: scrolled(choice, key) };
  return inTable(choice, data, key);
}

/** A second press of its key leaves a screen. */
function show(choice: Choice, screen: Screen): Pressed {
  if (choice.screen === screen) return back(choice);
  const behind = ['queue', 'request'].includes(choice.screen) ? choice.screen : choice.behind;
  return { choice: { ...choice, screen, behind, scroll: 0 } };
}

function back(choice: Choice): Pressed {
  if (choice.screen === 'queue')
    return { choice: choice.text === '' ? choice : { ...choice, text: '', page: 1, place: 0 } };
  const screen = choice.screen === 'request' ? 'queue' : choice.behind;
  const opened = screen === 'request' ? choice.opened : '';
  return { choice: { ...choice, screen, opened, behind: 'queue', scroll: 0 } };
}

const STEPS: Readonly<Record<string, number>> = {
  ...{ up: -1, k: -1, down: 1, j: 1, pageup: -10, pagedown: 10 },
  ...{ home: -1e6, end: 1e6 },
};

function scrolled(choice: Choice, { name = '' }: Key): Choice {
  const scroll = Math.max(0, Math.min(choice.scroll + (STEPS[name] ?? 0), 10_000));
  return { ...choice, scroll };
}

function inTable(choice: Choice, data: Data, key: Key): Pressed {
  const typed = key.sequence ?? '';
  const { name = '' } = key;
  if (typed === '/')
    return {
      choice: { ...choice, prompt: { kind: 'filter', text: choice.text, before: choice.text } },
    };
  if (typed === 's') return { choice: first({ ...choice, sort: next(SORTS, choice.sort, 1) }) };
  if (typed === 'S') return { choice: first({ ...choice, descending: !choice.descending }) };
  if (name === 'left' || name === 'right') {
    const which = next(STATES, choice.which, name === 'left' ? -1 : 1);
    return { choice: first({ ...choice, which }) };
  }
  const rows = data.requests?.rows ?? [];
  const place = placeOf(choice, data);
  if (name === 'return' || name === 'enter') {
    const row = rows[place];
    if (!row) return { choice };
    return {
      choice: { ...choice, screen: 'request', opened: row.id, selected: row.id, place, scroll: 0 },
    };
  }
  const pages = data.requests?.pages ?? 1;
  const to = (page: number, at: number): Pressed => ({
    choice: { ...choice, page: Math.max(1, Math.min(page, pages)), place: at, selected: '' },
  });
  const end = Number.MAX_SAFE_INTEGER;
  if (name === 'pageup') return to(choice.page - 1, choice.page > 1 ? place : 0);
  if (name === 'pagedown') return to(choice.page + 1, choice.page < pages ? place : end);
  if (name === 'home') return to(1, 0);
  if (name === 'end') return to(pages, end);
  const step = STEPS[name] ?? 0;
  if (step === 0) return { choice };
  const at = place + step;
  if (at < 0) return choice.page > 1 ? to(choice.page - 1, end) : { choice };
  if (at >= rows.length) return choice.page < pages ? to(choice.page + 1, 0) : { choice };
  return { choice: { ...choice, place: at, selected: rows[at]?.id ?? '' } };
}

const first = (choice: Choice): Choice => ({ ...choice, page: 1, place: 0, selected: '' });

function next<T>(all: readonly T[], now: T, step: number): T {
  return all[(all.indexOf(now) + step + all.length) % all.length] as T;
}

/** Changes of the request that is selected or open. */
function control(choice: Choice, data: Data, key: 'p' | 'l' | 'r', readOnly: boolean): Pressed {
  const say = (text: string): Pressed => ({ choice, effect: { do: 'say', text } });
  const row = target(choice, data);
  if (!row) return choice.screen === 'queue' ? say('No request is selected.') : { choice };
  if (readOnly) return say(READ_ONLY);
  if (choice.screen === 'queue' && !['', row.id].includes(choice.selected))
    return {
      choice: { ...choice, selected: row.id },
      effect: {
        do: 'say',
        text: `${choice.selected} has left this list. Now ${row.id} is selected: press ${key} again for that.`,
      },
    };
  const { id, counts, limit } = row;
  const hasEnded = row.status === 'complete';
  if (key === 'r') {
    if (!hasEnded) return say(`${id} has not ended: when it has, r runs again what failed.`);
    if (counts.failed === 0) return say(`Nothing of ${id} failed.`);
    return { choice: { ...choice, prompt: { kind: 'redrive', id, failed: counts.failed } } };
  }
  if (hasEnded) return say(`${id} has ended.`);
  if (key === 'p')
    return { choice, effect: { do: row.waitingFor === 'resume' ? 'resume' : 'pause', id } };
  return { choice: { ...choice, prompt: { kind: 'limit', id, now: limit, text: '', wrong: '' } } };
}

function inPrompt(choice: Choice, key: Key): Pressed {
  const { prompt } = choice;
  if (!prompt) return { choice };
  const closed: Choice = { ...choice, prompt: undefined };
  const typed = key.sequence ?? '';
  const isEnter = key.name === 'return' || key.name === 'enter';
  if (prompt.kind === 'redrive') {
    if (typed === 'y') return { choice: closed, effect: { do: 'redrive', id: prompt.id } };
    // Any other key means no, but not one that may have been pressed by mistake.
    return ['n', 'q'].includes(typed) || key.name === 'escape' ? { choice: closed } : { choice };
  }
  if (key.name === 'escape')
    return { choice: prompt.kind === 'filter' ? { ...closed, text: prompt.before } : closed };
  if (isEnter && prompt.kind === 'filter') return { choice: closed };
  if (isEnter && prompt.kind === 'limit') {
    if (prompt.text.trim() === '') return { choice: closed };
    const limit = limitOf(prompt.text);
    if (limit !== undefined)
      return { choice: closed, effect: { do: 'limit', id: prompt.id, limit } };
    const wrong = `a number from 1 to ${MOST_LIMIT.toLocaleString('en-US')}, or none`;
    return { choice: { ...choice, prompt: { ...prompt, wrong } } };
  }
  const text = edited(prompt.text, key);
  if (prompt.kind === 'filter')
    return { choice: first({ ...choice, text, prompt: { ...prompt, text } }) };
  return { choice: { ...choice, prompt: { ...prompt, text, wrong: '' } } };
}

/** undefined: it is no limit. */
function limitOf(text: string): number | null | undefined {
  if (text.trim() === 'none') return null;
  const limit = /^\d{1,9}$/.test(text.trim()) ? Number(text) : 0;
  return limit >= 1 && limit <= MOST_LIMIT ? limit : undefined;
}

function edited(text: string, key: Key): string {
  if (key.name === 'backspace') return [...text].slice(0, -1).join('');
  if (key.ctrl && key.name === 'u') return '';
  const typed = key.sequence ?? '';
  // Arrows and other keys have sequences that begin with a control character.
  if (key.ctrl || key.meta || typed === '' || shownText(typed) !== typed) return text;
  return (text + typed).slice(0, LONGEST);
}
