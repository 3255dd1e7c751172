import type { FailureDetail, RequestView, Row } from '@piecework/views';
import {
  count,
  doneOf,
  duration,
  endsAt,
  percent,
  plural,
  rate,
  timeLeft,
} from '@piecework/views/format';
import { useState } from 'preact/hooks';
import { Chart, type Line, Lines, showsCount, showsRate, spanOf } from './chart.js';
import { Control } from './control/request.js';
import { Cost, Facts, Life } from './life.js';
import { ask, clock, type Drawn, shell, useLive } from './live.js';
import {
  BOOKS,
  Books,
  Panel,
  Pending,
  Problem,
  Scrolls,
  SETTLED,
  State,
  Term,
  Verbatim,
  WorkerLink,
} from './parts.js';
import { Results, Value } from './results.js';
import { linkTo, route } from './route.js';

export function OneRequest() {
  const { queue, id } = route.value;
  const live = useLive<RequestView>({ view: 'request', queue, id });
  const { data } = live;
  return (
    <>
      <h1 class="of-request">
        <a href={linkTo('requests')}>Requests</a> <span aria-hidden="true">/</span>{' '}
        <bdi class="id">{id}</bdi> {data ? <State row={data.row} /> : null}
      </h1>
      {live.problem ? <Problem message={gone(live.problem.code) ?? live.problem.message} /> : null}
      {data ? (
        <Shown view={data} chart={live.chart} />
      ) : live.problem ? null : (
        <Pending live={live} />
      )}
    </>
  );
}

function gone(code: string): string | undefined {
  if (code === 'DROPPED') return 'This request was dropped.';
  if (code === 'EXPIRED') return 'This request has ended, and its retention has passed.';
  if (code === 'NOT_FOUND' || code === 'LOST')
    return 'There is no such request, or it no longer exists.';
  return undefined;
}

function Shown({ view, chart }: { readonly view: RequestView; readonly chart: Drawn }) {
  const { row } = view;
  const isOver = row.status === 'complete';
  return (
    <>
      <Progress row={row} />
      <div class="grid request">
        <div class="column-of">
          {isOver ? null : <Charts row={row} chart={chart} />}
          <Failures view={view} />
          {isOver ? null : <Running view={view} />}
          <Results row={row} />
        </div>
        <div class="column-of">
          {shell.value?.control ? (
            <Panel title="Control" class="control">
              <Control view={view} />
            </Panel>
          ) : null}
          <Life view={view} />
          <Cost view={view} />
          <Facts view={view} />
        </div>
      </div>
    </>
  );
}

const titleOf = ({ outcome }: Row) => `${outcome.slice(0, 1).toUpperCase()}${outcome.slice(1)}`;

const READ_AHEAD = 'A worker has them already, and starts them as its slots become free.';

/** 46 of 300 failed. */
function endOf({ counts: { failed, cancelled, total } }: Row): string {
  const said = [
    ...(failed > 0 ? [`${count(failed)} failed`] : []),
    ...(cancelled > 0 ? [`${count(cancelled)} cancelled`] : []),
  ];
  return said.length > 0 ? `${said.join(', ')} of ${count(total)}` : `all ${count(total)}`;
}

const sentence = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;

function Progress({ row }: { readonly row: Row }) {
  const { counts } = row;
  const done = doneOf(counts);
  const isOver = row.status === 'complete';
  const words = isOver
    ? endOf(row)
    : row.etaMs !== null
      ? `${timeLeft(row.etaMs)} left at this rate, until about ${endsAt(clock.value, row.etaMs)}`
      : row.status === 'open'
        ? 'more sub-requests may come'
        : 'no rate yet';
  return (
    <section class="panel progress" aria-label="Progress">
      <p class={row.waitingFor === '' ? 'standing' : 'standing warn'}>{sentence(row.why)}</p>
      <div class="line">
        <p class="big">
          {isOver ? titleOf(row) : percent(done, counts.total)} <span class="beside">{words}</span>
        </p>
        <p class="big right">
          {isOver ? (
            <span class="beside">took {duration(row.completedAt - row.createdAt)}</span>
          ) : (
            <>
              {rate(row.rate)}{' '}
              <span class="beside">
                <Term means={SETTLED}>settled per second</Term>
              </span>
            </>
          )}
        </p>
      </div>
      <Books counts={counts} tall />
      <dl class="sum">
        {BOOKS.map(([name, words], i) => (
          <div key={name} class={counts[name] === 0 ? 'none' : ''}>
            <dt>
              <i class={`part ${name}`} /> {words}
            </dt>
            <dd>
              {i > 0 ? (
                <span class="sign" aria-hidden="true">
                  +{' '}
                </span>
              ) : null}
              {count(counts[name])}
              {name === 'ready' && row.ahead > 0 ? (
                <span class="beside">
                  {' '}
                  {count(row.ahead)} of them <Term means={READ_AHEAD}>read ahead</Term>
                </span>
              ) : null}
            </dd>
          </div>
        ))}
        <div>
          <dt>in all</dt>
          <dd>
            <span class="sign" aria-hidden="true">
              ={' '}
            </span>
            {count(counts.total)}
          </dd>
        </div>
      </dl>
    </section>
  );
}

const SETTLED_LINES: readonly Line[] = [
  { name: 'settled per second', of: ({ succeeded }) => succeeded, colour: 'good', isFilled: true },
];
const RUNNING: readonly Line[] = [
  { name: 'running', of: ({ running }) => running, colour: 'busy', isFilled: true },
  { name: 'limit', of: ({ slots }) => slots, colour: 'quiet' },
];
const RUNNING_ALONE = RUNNING.slice(0, 1);

function Charts({ row, chart }: { readonly row: Row; readonly chart: Drawn }) {
  const { points } = chart;
  const since = spanOf(chart);
  const span = since ? (
    <Term means="The last ten minutes, as far as a page showed this request: when nobody looks, nothing is recorded.">
      {since}
    </Term>
  ) : null;
  return (
    <div class="grid two">
      <Panel title="Settled per second" about={SETTLED} aside={span}>
        <Chart
          points={points}
          lines={SETTLED_LINES}
          label="Throughput"
          shows={showsRate}
          height={110}
        />
      </Panel>
      <Panel
        title="Running"
        aside={row.limit === null ? span : <Lines lines={RUNNING} span={span} />}
      >
        <Chart
          key={String(row.limit === null)}
          points={points}
          lines={row.limit === null ? RUNNING_ALONE : RUNNING}
          label="Running"
          shows={showsCount}
          height={110}
        />
      </Panel>
    </div>
  );
}

/** From so many on, the list of what runs is not all of it. */
const SHOWN = 100;

/** The list is read just after the counts, and short handlers end in between. */
function shareOf(listed: number, counted: number): string {
  if (listed === 0) return '';
  if (listed === counted) return `${count(listed)}, the longest first`;
  if (listed >= SHOWN) return `the ${listed} longest of ${count(counted)}`;
  if (listed > counted) return `${listed - counted} of these have started since the counts above`;
  const others = counted - listed === 1 ? 'the other one' : 'the others';
  return `${listed} of ${count(counted)}: ${others} ended before the list was read`;
}

function nothingOf(row: Row): string {
  const { running } = row.counts;
  return running > 0
    ? `The ${count(running)} that ran ended before the list was read.`
    : 'Nothing runs at this moment.';
}

function Running({ view }: { readonly view: RequestView }) {
  const { running, row } = view;
  return (
    <Panel title="Running now" aside={shareOf(running.length, row.counts.running)}>
      {running.length === 0 ? (
        <p class="nothing">{nothingOf(row)}</p>
      ) : (
        <Scrolls label="Running now, the longest first">
          <table class="list dense">
            <caption class="hidden">Running sub-requests, the longest first</caption>
            <thead>
              <tr>
                <th scope="col" class="n">
                  Index
                </th>
                <th scope="col" class="n">
                  For
                </th>
                <th scope="col" class="n">
                  Attempt
                </th>
                <th scope="col" class="n">
                  <Term means="The last number that the handler passed to context.progress">
                    Progress
                  </Term>
                </th>
                <th scope="col">Worker</th>
              </tr>
            </thead>
            <tbody>
              {running.map((one) => (
                <tr key={one.index}>
                  <th scope="row" class="n">
                    {one.index}
                  </th>
                  <td class="n">{duration(one.forMs)}</td>
                  <td class={one.attempt > 1 ? 'n' : 'n none'}>{one.attempt}</td>
                  <td class={one.progress === null ? 'n none' : 'n'}>{one.progress ?? '–'}</td>
                  <td class="small">
                    <WorkerLink id={one.worker} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolls>
      )}
    </Panel>
  );
}

function Failures({ view }: { readonly view: RequestView }) {
  const { failures, failuresRead, row } = view;
  if (row.counts.failed === 0) return null;
  const aside =
    row.counts.failed > failuresRead
      ? `of the first ${count(failuresRead)}`
      : plural(row.counts.failed, 'failure');
  return (
    <Panel title="Why they failed" aside={aside}>
      <ul class="errors">
        {failures.map((group) => (
          <li key={group.index}>
            <div class="line">
              <b class="bad">
                <bdi>{group.name}</bdi>
              </b>
              <span class="small">{plural(group.count, 'time')}</span>
            </div>
            <p class="message">
              <span class="small">sub-request {group.index}: </span>
              <bdi>{group.message}</bdi>
            </p>
            <Example key={group.index} index={group.index} id={row.id} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** One failure, behind a click. */
function Example({ index, id }: { readonly index: number; readonly id: string }) {
  const [detail, setDetail] = useState<FailureDetail | string | undefined>(undefined);
  const open = async (isOpen: boolean) => {
    if (!isOpen || detail !== undefined) return;
    const query = new URLSearchParams({ queue: route.value.queue, id, index: String(index) });
    try {
      setDetail(await ask<FailureDetail>(`api/failure?${query}`));
    } catch (error) {
      setDetail((error as Error).message);
    }
  };
  return (
    <details onToggle={({ currentTarget }) => void open(currentTarget.open)}>
      <summary>Stack and payload of sub-request {index}</summary>
      {detail === undefined ? <p class="pending">Reading …</p> : null}
      {typeof detail === 'string' ? <Problem message={detail} /> : null}
      {typeof detail === 'object' ? (
        <div class="detail">
          <p class="small">
            {plural(detail.attempts, 'attempt')}
            {detail.crashes > 0
              ? `, ${plural(detail.crashes, 'crash', 'crashes')} of its workers`
              : ''}
            {detail.worker ? (
              <>
                , last on <WorkerLink id={detail.worker} />
              </>
            ) : null}
          </p>
          {detail.stack ? (
            <Verbatim text={detail.stack} label="Stack" />
          ) : (
            <p class="small">It has no stack.</p>
          )}
          <p class="small">
            Payload: {detail.payload.about}
            {detail.payload.hidden ? ', not shown by this dashboard' : ''}
          </p>
          <Value value={detail.payload} />
        </div>
      ) : null}
    </details>
  );
}
