import type { IndexState, RequestsView, Row } from '@piecework/views';
import { count, duration, perSecond, plural, timeLeft } from '@piecework/views/format';
import { useRef, useState } from 'preact/hooks';
import { useLive } from './live.js';
import { Ago, Books, Done, Pending, Problem, RequestLink, RUNNING, State } from './parts.js';
import { changeParams, route } from './route.js';

const STATES = [
  'any',
  'open',
  'running',
  'waiting',
  'paused',
  'failing',
  'succeeded',
  'failed',
  'cancelled',
];
/** What a state is called where its name says too little. */
const WORDS: Readonly<Record<string, string>> = { failing: 'open, with failures' };
const AGES = [
  ['', 'Any age'],
  ['younger-3600000', 'Last hour'],
  ['younger-86400000', 'Last day'],
  ['older-3600000', 'Older than an hour'],
  ['older-86400000', 'Older than a day'],
] as const;

/** Columns by which the list can be sorted. */
const COLUMNS = [
  ['id', 'Request', ''],
  ['', 'State', ''],
  ['progress', 'Progress', ''],
  ['total', 'Sub-requests', 'n'],
  ['failed', 'Failed', 'n'],
  ['running', 'Running', 'n'],
  ['rate', 'Rate', 'n'],
  ['left', 'Time left', 'n'],
  ['priority', 'Priority', 'n'],
  ['created', 'Created', 'n'],
] as const;

const PAGE_SIZE = 50;

export function Requests() {
  const { queue, params } = route.value;
  const of = (name: string, byDefault = '') => params.get(name) ?? byDefault;
  const [, ageKind = '', ageMs = ''] = /^(younger|older)-(\d{1,12})$/.exec(of('age')) ?? [];
  const state = STATES.includes(of('state')) ? of('state') : 'any';
  const sort =
    COLUMNS.some(([name]) => name !== '' && name === of('sort')) || of('sort') === 'task'
      ? of('sort')
      : 'created';
  const descending = of('descending', 'true') === 'true';
  const live = useLive<RequestsView>({
    view: 'requests',
    queue,
    text: of('text').slice(0, 200),
    state,
    sort,
    descending: String(descending),
    priorityFrom: priority(of('priorityFrom'), '0'),
    priorityTo: priority(of('priorityTo'), '99'),
    page: /^\d{1,6}$/.test(of('page')) ? String(Math.max(1, Number(of('page')))) : '1',
    size: String(PAGE_SIZE),
    ...(ageKind === 'older' ? { olderThanMs: ageMs } : {}),
    ...(ageKind === 'younger' ? { youngerThanMs: ageMs } : {}),
  });
  const { data } = live;
  return (
    <>
      <h1 class="hidden">Requests of {queue}</h1>
      <Filters state={state} states={data?.states ?? {}} />
      {live.problem && data ? <Problem {...live.problem} /> : null}
      {data ? (
        <>
          <Table rows={data.rows} sort={sort} descending={descending} />
          <Foot view={data} />
        </>
      ) : (
        <Pending live={live} />
      )}
    </>
  );
}

const priority = (text: string, byDefault: string) => (/^\d{1,2}$/.test(text) ? text : byDefault);

function Filters({
  state,
  states,
}: {
  readonly state: string;
  readonly states: Readonly<Record<string, number>>;
}) {
  const { params } = route.value;
  const [text, setText] = useState(params.get('text') ?? '');
  const timer = useRef<number | undefined>(undefined);
  const change = (changes: Readonly<Record<string, string>>) =>
    changeParams({ ...changes, page: '' });
  const onText = (value: string) => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => change({ text: value }), 200);
  };
  return (
    <search class="filters">
      <label class="field grow">
        <span class="hidden">Search id, task and metadata</span>
        <input
          type="search"
          placeholder="Search id, task, metadata"
          maxLength={200}
          value={text}
          onInput={({ currentTarget }) => onText(currentTarget.value)}
        />
      </label>
      <fieldset class="states">
        <legend class="hidden">State</legend>
        {STATES.map((name) => (
          <label key={name} class={name === state ? 'on' : ''}>
            <input
              type="radio"
              name="state"
              checked={name === state}
              onChange={() => change({ state: name === 'any' ? '' : name })}
            />
            {WORDS[name] ?? name}
            <span class="n">{states[name] === undefined ? '' : count(states[name])}</span>
          </label>
        ))}
      </fieldset>
      <div class="field range">
        <label>
          Priority
          <input
            type="number"
            min="0"
            max="99"
            placeholder="0"
            value={params.get('priorityFrom') ?? ''}
            onChange={({ currentTarget }) => change({ priorityFrom: currentTarget.value })}
          />
        </label>
        <label>
          to
          <input
            type="number"
            min="0"
            max="99"
            placeholder="99"
            value={params.get('priorityTo') ?? ''}
            onChange={({ currentTarget }) => change({ priorityTo: currentTarget.value })}
          />
        </label>
      </div>
      <label class="field">
        <span class="hidden">Age</span>
        <select
          value={params.get('age') ?? ''}
          onChange={({ currentTarget }) => change({ age: currentTarget.value })}
        >
          {AGES.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      </label>
    </search>
  );
}

function Table({
  rows,
  sort,
  descending,
}: {
  readonly rows: readonly Row[];
  readonly sort: string;
  readonly descending: boolean;
}) {
  if (rows.length === 0) return <p class="nothing">No request matches.</p>;
  return (
    <table class="list requests-table">
      <caption class="hidden">Requests</caption>
      <thead>
        <tr>
          {COLUMNS.map(([name, words, kind]) => {
            const isSorted = name !== '' && name === sort;
            const next = isSorted ? !descending : !['id', 'priority', 'left'].includes(name);
            return (
              <th
                key={words}
                scope="col"
                class={kind}
                aria-sort={isSorted ? (descending ? 'descending' : 'ascending') : undefined}
              >
                {name === '' ? (
                  words
                ) : (
                  <button
                    type="button"
                    class="sort"
                    title={name === 'running' ? RUNNING : undefined}
                    onClick={() => changeParams({ sort: name, descending: String(next), page: '' })}
                  >
                    {words}
                    <span aria-hidden="true">{isSorted ? (descending ? ' ↓' : ' ↑') : ''}</span>
                  </button>
                )}
              </th>
            );
          })}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id}>
            <th scope="row" class="name">
              <RequestLink id={row.id} />
              {row.task ? (
                <span class="task">
                  <bdi>{row.task}</bdi>
                </span>
              ) : null}
            </th>
            <td data-name="State">
              <State row={row} />
            </td>
            <td class="bar" data-name="Progress">
              <Books counts={row.counts} />
              <span class="small">
                <Done counts={row.counts} />
              </span>
            </td>
            <td class="n" data-name="Sub-requests">
              {count(row.counts.total)}
            </td>
            <td class={row.counts.failed > 0 ? 'n bad' : 'n none'} data-name="Failed">
              {count(row.counts.failed)}
            </td>
            <td class={row.counts.running > 0 ? 'n' : 'n none'} data-name="Running">
              {count(row.counts.running)}
            </td>
            <td class={row.rate > 0 ? 'n' : 'n none'} data-name="Rate">
              {row.rate > 0 ? perSecond(row.rate) : '0'}
            </td>
            <td class={row.etaMs !== null ? 'n' : 'n none'} data-name="Time left">
              {row.etaMs !== null ? timeLeft(row.etaMs) : '–'}
            </td>
            <td class="n" data-name="Priority">
              {row.priority}
            </td>
            <td class="n" data-name="Created">
              <Ago at={row.createdAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Foot({ view }: { readonly view: RequestsView }) {
  const { page, pages, matches, index } = view;
  const first = matches === 0 ? 0 : (page - 1) * PAGE_SIZE + 1;
  const to = (n: number) => changeParams({ page: String(n) });
  return (
    <div class="foot">
      <p class="small" role="status">
        {matches > PAGE_SIZE
          ? `${count(first)} to ${count(first + view.rows.length - 1)} of ${plural(matches, 'request')}`
          : plural(matches, 'request')}
        {note(index)}
      </p>
      {pages > 1 ? (
        <nav aria-label="Pages of the list">
          <button type="button" disabled={page <= 1} onClick={() => to(1)}>
            First
          </button>
          <button type="button" disabled={page <= 1} onClick={() => to(page - 1)}>
            Previous
          </button>
          <span class="small">
            {count(page)} of {count(pages)}
          </span>
          <button type="button" disabled={page >= pages} onClick={() => to(page + 1)}>
            Next
          </button>
          <button type="button" disabled={page >= pages} onClick={() => to(pages)}>
            Last
          </button>
        </nav>
      ) : null}
    </div>
  );
}

function note({ complete, truncated, ageMs, rows }: IndexState): string {
  if (!complete) return `; ${count(rows)} read so far …`;
  const kept = truncated ? `; the dashboard keeps ${count(rows)}, the queue has more` : '';
  return ageMs >= 3_000
    ? `${kept}; rows that are not on this page are up to ${duration(ageMs).replace('.0', '')} old`
    : kept;
}
