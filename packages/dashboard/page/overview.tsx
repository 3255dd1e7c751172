import type { OverviewView, Point } from '../src/shape/views.js';
import { Chart, type Line, Lines, showsCount, showsRate } from './chart.js';
import { Checks } from './checks.js';
import { QueuePause } from './control/queue.js';
import { count, duration, plural, rate, until } from './format.js';
import { clock, type Drawn, shell, useLive } from './live.js';
import {
  Ago,
  Books,
  Done,
  Legend,
  Panel,
  Pending,
  Problem,
  RequestLink,
  Since,
  State,
  Tile,
} from './parts.js';
import { linkTo, route } from './route.js';

export function Overview() {
  const { queue } = route.value;
  const live = useLive<OverviewView>({ view: 'overview', queue });
  const { data } = live;
  if (!data) return <Pending live={live} />;
  return (
    <>
      <h1 class="hidden">Overview of {queue}</h1>
      {live.problem ? <Problem {...live.problem} /> : null}
      <Verdicts view={data} />
      <Tiles view={data} />
      <div class="grid two">
        <Throughput chart={live.chart} />
        <Running chart={live.chart} />
      </div>
      <div class="grid three">
        <Busiest view={data} />
        <Backlog view={data} />
        <Failing view={data} />
      </div>
      <Checks view={data} queue={queue} />
    </>
  );
}

function Verdicts({ view }: { readonly view: OverviewView }) {
  const amiss = view.verdicts.filter(({ level }) => level !== 'ok');
  const notes = view.verdicts.filter(({ level }) => level === 'ok');
  const found = view.checks?.findings.filter(({ level }) => level !== 'ok') ?? [];
  const worst = [...amiss, ...found].some(({ level }) => level === 'error')
    ? 'error'
    : amiss.length + found.length > 0
      ? 'warning'
      : 'ok';
  const all = amiss.length + found.length;
  const title =
    worst === 'ok'
      ? 'All is well'
      : worst === 'error'
        ? 'Something is wrong'
        : `${plural(all, 'thing')} to look at`;
  return (
    <section class={`verdict ${worst}`} aria-label="Is all well?">
      <p class="answer">{title}</p>
      <ul>
        {amiss.map((one) => (
          <li key={one.what}>
            {one.what} <span class="more">{one.cure}</span>
          </li>
        ))}
        {found.length > 0 ? (
          <li>
            {plural(found.length, 'finding')} of the checks:{' '}
            <button type="button" class="as-link" onClick={toChecks}>
              see below
            </button>
          </li>
        ) : null}
        {notes.map((one) => (
          <li key={one.what} class="more">
            {one.what}
          </li>
        ))}
        {worst === 'ok' && notes.length === 0 ? <li class="more">{summary(view)}</li> : null}
      </ul>
      {view.pausedUntil !== null || shell.value?.control ? (
        <QueuePause pausedUntil={view.pausedUntil} />
      ) : null}
    </section>
  );
}

function toChecks(): void {
  document.getElementById('checks')?.scrollIntoView();
}

function summary({ open, rate: settled, workers }: OverviewView): string {
  if (open === 0) return `Nothing is open. ${plural(workers.alive, 'worker')} ready.`;
  return `${plural(open, 'request')} open, ${rate(settled)} sub-requests settled a second.`;
}

function Tiles({ view }: { readonly view: OverviewView }) {
  const { workers, ended, oldest, index } = view;
  const share = workers.slots > 0 ? `of ${plural(workers.slots, 'slot')}` : 'no slots';
  const left = view.rate > 0 ? duration(((view.ready + view.running) / view.rate) * 1_000) : '–';
  const trouble = [
    workers.silent > 0 ? `${workers.silent} silent` : '',
    workers.draining > 0 ? `${workers.draining} draining` : '',
    workers.stuck > 0 ? `${plural(workers.stuck, 'slot')} stuck` : '',
  ].filter(Boolean);
  return (
    <dl class="tiles">
      <Tile
        name="Settled a second"
        value={rate(view.rate)}
        more={index.complete ? '' : 'still reading'}
      />
      <Tile name="Running" value={count(workers.busy)} more={share} />
      <Tile
        name="Ready"
        value={count(view.ready)}
        more={view.ready > 0 ? `${left} at this rate` : ''}
      />
      <Tile
        name="Delayed"
        value={count(view.delayed)}
        more={view.nextDue === null ? '' : `next request ${until(view.nextDue, clock.value)}`}
      />
      <Tile
        name="Open requests"
        value={count(view.open)}
        more={view.parked > 0 ? `${count(view.parked)} not served` : ''}
      />
      <Tile
        name="Workers"
        value={count(workers.alive)}
        more={trouble.join(', ') || 'all alive'}
        tone={workers.silent + workers.stuck > 0 ? 'warn' : ''}
      />
      <Tile
        name="Oldest waiting"
        value={oldest ? <Since at={oldest.createdAt} /> : 'none'}
        more={oldest ? <RequestLink id={oldest.id} /> : ''}
      />
      <Tile
        name="Ended"
        value={count(ended.succeeded + ended.failed + ended.cancelled)}
        more={`${count(ended.failed)} failed, ${count(ended.cancelled)} cancelled`}
      />
    </dl>
  );
}

const spanOf = ({ from }: Drawn) =>
  from === 'hour' ? 'last hour' : 'since the dashboard was opened';

function Throughput({ chart }: { readonly chart: Drawn }) {
  const each = chart.from === 'hour' ? 1_000 / chart.intervalMs : 1;
  const lines: Line[] = [
    {
      name: 'settled',
      of: (point: Point) => (point.succeeded + point.failed) * each,
      colour: 'good',
      isFilled: true,
    },
    ...(chart.from === 'hour'
      ? [
          { name: 'failed', of: (point: Point) => point.failed * each, colour: 'bad' },
          { name: 'tried again', of: (point: Point) => point.retried * each, colour: 'warn' },
        ]
      : []),
  ];
  return (
    <Panel title="Settled a second" aside={<Lines lines={lines} span={spanOf(chart)} />}>
      <Chart
        key={chart.from}
        points={chart.points}
        lines={lines}
        label="Throughput"
        shows={showsRate}
      />
    </Panel>
  );
}

function Running({ chart }: { readonly chart: Drawn }) {
  const lines: Line[] = [
    { name: 'slots', of: ({ slots }: Point) => slots, colour: 'quiet' },
    { name: 'running', of: ({ running }: Point) => running, colour: 'busy', isFilled: true },
  ];
  return (
    <Panel title="Running, of all slots" aside={<Lines lines={lines} span={spanOf(chart)} />}>
      <Chart
        key={chart.from}
        points={chart.points}
        lines={lines}
        label="Running"
        shows={showsCount}
      />
    </Panel>
  );
}

function Busiest({ view }: { readonly view: OverviewView }) {
  return (
    <Panel
      title="Open requests"
      aside={<a href={linkTo('requests', '', { state: 'open' })}>all {count(view.open)}</a>}
    >
      {view.busiest.length === 0 ? <p class="nothing">No request is open.</p> : null}
      <ul class="requests">
        {view.busiest.map((row) => (
          <li key={row.id}>
            <div class="line">
              <RequestLink id={row.id} />
              <State row={row} />
            </div>
            <Books counts={row.counts} />
            <div class="line small">
              <span>
                <Done counts={row.counts} /> of {count(row.counts.total)}
                {row.counts.failed > 0 ? (
                  <b class="bad"> {count(row.counts.failed)} failed</b>
                ) : null}
              </span>
              <span>
                {row.rate > 0 ? `${rate(row.rate)}/s` : ''}
                {row.etaMs !== null ? `, ${duration(row.etaMs)} left` : ''}
              </span>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Sub-requests by priority: a column for each of the hundred, and those that are not empty in words. */
function Backlog({ view }: { readonly view: OverviewView }) {
  const bars = new Map(view.backlog.map((bar) => [bar.priority, bar]));
  const all = view.backlog.map(({ ready, delayed, running }) => ready + delayed + running);
  // By the root: a small one beside a big one can be seen.
  const most = Math.sqrt(Math.max(1, ...all));
  const top = [...view.backlog].sort((a, b) => b.ready - a.ready).slice(0, 4);
  return (
    <Panel title="Backlog by priority" aside={<Legend names={['running', 'ready', 'delayed']} />}>
      <div class="backlog" aria-hidden="true">
        {Array.from({ length: 100 }, (_, priority) => {
          const bar = bars.get(priority);
          const sum = bar ? bar.ready + bar.delayed + bar.running : 0;
          const height = sum === 0 ? 0 : Math.max(4, (Math.sqrt(sum) / most) * 100);
          return (
            <div
              key={priority}
              title={
                bar
                  ? `priority ${priority}: ${count(bar.ready)} ready, ${count(bar.running)} running, ${count(bar.delayed)} delayed`
                  : `priority ${priority}: empty`
              }
            >
              {bar && sum > 0 ? (
                <span class="column" style={{ height: `${height}%` }}>
                  <i class="part delayed" style={{ flexGrow: bar.delayed }} />
                  <i class="part ready" style={{ flexGrow: bar.ready }} />
                  <i class="part running" style={{ flexGrow: bar.running }} />
                </span>
              ) : null}
            </div>
          );
        })}
      </div>
      <div class="scale" aria-hidden="true">
        <span>0 served first</span>
        <span>50</span>
        <span>99 served last</span>
      </div>
      {view.backlog.length === 0 ? <p class="nothing">Nothing waits.</p> : null}
      <table class="small-table">
        <caption class="hidden">Priorities with most that is ready</caption>
        <thead class={top.length === 0 ? 'hidden' : ''}>
          <tr>
            <th scope="col">Priority</th>
            <th scope="col" class="n">
              Ready
            </th>
            <th scope="col" class="n">
              Running
            </th>
            <th scope="col" class="n">
              Delayed
            </th>
            <th scope="col" class="n">
              Requests
            </th>
          </tr>
        </thead>
        <tbody>
          {top.map((bar) => (
            <tr key={bar.priority}>
              <th scope="row">
                <a
                  href={linkTo('requests', '', {
                    state: 'open',
                    priorityFrom: String(bar.priority),
                    priorityTo: String(bar.priority),
                  })}
                >
                  {bar.priority}
                </a>
              </th>
              <td class="n">{count(bar.ready)}</td>
              <td class="n">{count(bar.running)}</td>
              <td class="n">{count(bar.delayed)}</td>
              <td class="n">{count(bar.requests)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function Failing({ view }: { readonly view: OverviewView }) {
  return (
    <Panel title="Last errors by class" aside={<a href={linkTo('errors')}>all</a>}>
      {view.errors.length === 0 ? <p class="nothing">No attempt has failed lately.</p> : null}
      <ul class="errors">
        {view.errors.map((group) => (
          <li key={`${group.name} ${group.task}`}>
            <div class="line">
              <span class="what">
                <b class="bad">
                  <bdi>{group.name}</bdi>
                </b>{' '}
                {group.task ? (
                  <>
                    in <bdi>{group.task}</bdi>
                  </>
                ) : (
                  ''
                )}
              </span>
              <span class="small">
                {count(group.count)} times, <Ago at={group.lastAt} />
              </span>
            </div>
            <p class="message">
              <bdi>{group.message}</bdi>
            </p>
            <p class="small">
              last of <RequestLink id={group.requestId} />
            </p>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
