import type { Row, RowCounts } from '@piecework/views';
import {
  ago,
  clockSeconds,
  clockTime,
  count,
  doneOf,
  duration,
  percent,
  time,
  WAIT_WORDS,
} from '@piecework/views/format';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { clock, type Live } from './live.js';
import { linkTo } from './route.js';

/** A time as '3 min ago'; the exact one on hover. */
export function Ago({ at }: { readonly at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={time(at)}>
      {ago(at, clock.value)}
    </time>
  );
}

/** When, by the clock, and how long ago. */
export function Clock({ at }: { readonly at: number }) {
  return (
    <>
      {clockSeconds(at)}{' '}
      <span class="small">
        <Ago at={at} />
      </span>
    </>
  );
}

/** For how long, while it goes on. */
export function Since({ at }: { readonly at: number }) {
  return (
    <span title={time(at)}>
      {duration(Math.floor(Math.max(0, clock.value - at) / 1_000) * 1_000).replace('.0', '')}
    </span>
  );
}

export function RequestLink({ id }: { readonly id: string }) {
  return (
    <a class="id" href={linkTo('request', id)} title={id}>
      <bdi>{id}</bdi>
    </a>
  );
}

/** A worker by the one name that it has everywhere. */
export function WorkerLink({ id }: { readonly id: string }) {
  return (
    <a class="id of-worker" href={linkTo('workers', '', { worker: id })}>
      <bdi>{id}</bdi>
    </a>
  );
}

/** The books in the order in which they are drawn. */
export const BOOKS = [
  ['succeeded', 'succeeded'],
  ['failed', 'failed'],
  ['cancelled', 'cancelled'],
  ['running', 'running'],
  ['ready', 'ready'],
  ['delayed', 'delayed'],
] as const;

/** The books as one stacked bar. */
export function Books({
  counts,
  tall = false,
}: {
  readonly counts: RowCounts;
  readonly tall?: boolean;
}) {
  const { total } = counts;
  const said = BOOKS.filter(([name]) => counts[name] > 0).map(
    ([name, words]) => `${count(counts[name])} ${words}`,
  );
  return (
    <div
      class={tall ? 'books tall' : 'books'}
      role="img"
      aria-label={`Of ${count(total)}: ${said.join(', ') || 'nothing'}`}
    >
      {BOOKS.map(([name]) =>
        counts[name] > 0 ? (
          <span
            key={name}
            class={`part ${name}`}
            style={{ flexGrow: counts[name], flexBasis: 0 }}
          />
        ) : null,
      )}
    </div>
  );
}

export function Done({ counts }: { readonly counts: RowCounts }) {
  return <>{percent(doneOf(counts), counts.total)}</>;
}

const IN_TROUBLE = ['worker', 'task', 'lease', 'handler', 'memory'];

/** How it is, in a word, and the colour of that word. */
export function stateOf({ outcome, status, waitingFor, heldUntil, counts, rate }: Row): {
  word: string;
  tone: string;
} {
  if (outcome === 'succeeded') return { word: 'succeeded', tone: 'good' };
  if (outcome === 'failed') return { word: 'failed', tone: 'bad' };
  if (outcome === 'cancelled') return { word: 'cancelled', tone: 'quiet' };
  if (status === 'cancelling') return { word: 'cancelling', tone: 'quiet' };
  if (waitingFor !== '') {
    const word = WAIT_WORDS[waitingFor];
    return {
      word: waitingFor === 'time' && heldUntil > 0 ? `${word} until ${clockTime(heldUntil)}` : word,
      tone: IN_TROUBLE.includes(waitingFor) ? 'warn' : 'quiet',
    };
  }
  if (counts.failed > 0)
    return {
      word: `${counts.running > 0 || rate > 0 ? 'running' : 'waiting'}, ${count(counts.failed)} failed`,
      tone: 'warn',
    };
  // Between two turns nothing may run.
  if (counts.running > 0 || rate > 0) return { word: 'running', tone: 'busy' };
  if (counts.total === 0) return { word: 'open, empty', tone: 'quiet' };
  return { word: 'waiting', tone: 'quiet' };
}

export function State({ row }: { readonly row: Row }) {
  const { word, tone } = stateOf(row);
  return <Chip tone={tone}>{word}</Chip>;
}

export function Chip({
  tone,
  children,
}: {
  readonly tone: string;
  readonly children: ComponentChildren;
}) {
  return <span class={`chip ${tone}`}>{children}</span>;
}

/** What a word means that not everybody knows: on hover, and for those who listen. */
export function Term({ children, means }: { readonly children: string; readonly means: string }) {
  return <abbr title={means}>{children}</abbr>;
}

export const SETTLED = 'Sub-requests that succeeded, failed or were cancelled';
export const RUNNING =
  'Sub-requests that have the right to run, by the books of the requests; the limits bound them. One whose handler has ended counts until it is settled, and one that takes over a slot counts before the slot is free, so more may run than there are slots.';

export function Panel(props: {
  readonly title: string;
  /** What the title means. */
  readonly about?: string;
  readonly aside?: ComponentChildren;
  readonly class?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <section class={`panel ${props.class ?? ''}`} aria-label={props.title}>
      <div class="panel-head">
        <h2 title={props.about}>{props.title}</h2>
        {props.aside ? <div class="aside">{props.aside}</div> : null}
      </div>
      {props.children}
    </section>
  );
}

/** A number with its name. */
export function Tile(props: {
  readonly name: string;
  /** What the name means. */
  readonly title?: string;
  readonly value: ComponentChildren;
  readonly more?: ComponentChildren;
  readonly tone?: string;
}) {
  return (
    <div class={`tile ${props.tone ?? ''}`}>
      <dt title={props.title}>{props.name}</dt>
      <dd>
        <strong>{props.value}</strong>
        {props.more ? <span class="more">{props.more}</span> : null}
      </dd>
    </div>
  );
}

export function Legend({ names }: { readonly names: readonly string[] }) {
  return (
    <ul class="legend" aria-label="Colours">
      {BOOKS.filter(([name]) => names.includes(name)).map(([name, words]) => (
        <li key={name}>
          <i class={`part ${name}`} /> {words}
        </li>
      ))}
    </ul>
  );
}

/** Until the first value has come, or what went wrong. */
export function Pending<T>({ live }: { readonly live: Live<T> }) {
  if (live.problem) return <Problem {...live.problem} />;
  return (
    <p class="pending" role="status">
      Reading …
    </p>
  );
}

export function Problem({ message }: { readonly message: string }) {
  return (
    <p class="problem" role="alert">
      {message}
    </p>
  );
}

/** A dialog that takes the keyboard, and gives it back. */
export function Dialog(props: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const at = useRef<HTMLDialogElement>(null);
  useEffect(() => at.current?.showModal(), []);
  return (
    <dialog ref={at} aria-label={props.title} onClose={props.onClose}>
      <h2>{props.title}</h2>
      {props.children}
    </dialog>
  );
}

/** A part that scrolls by itself: the keyboard reaches it. */
export function Scrolls(props: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="scrolls" tabIndex={0} aria-label={props.label}>
      {props.children}
    </section>
  );
}

/** Text of a user as it is, which may be long. */
export function Verbatim({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="verbatim" tabIndex={0} aria-label={label}>
      <pre>
        <bdi>{text}</bdi>
      </pre>
    </section>
  );
}
