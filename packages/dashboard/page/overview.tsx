import type { BacklogBar, OverviewView, Point, Verdict } from '@piecework/views';
import { count, perSecond, plural, rate, timeLeft, until } from '@piecework/views/format';
import { Chart, type Line, Lines, showsCount, showsRate, spanOf } from './chart.js';
import { Checks } from './checks.js';
import { QueuePause } from './control/queue.js';
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
  RUNNING,
  SETTLED,
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
      <Heading queue={queue} pausedUntil={data.pausedUntil} />
      {live.problem ? <Problem {...live.problem} /> : null}
      <Verdicts view={data} />
      <Tiles view={data} />
      <div class="grid two">
        <Throughput chart={live.chart} />
        <Slots chart={live.chart} />
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

/** The queue by its name, and its own control. */
function Heading({
  queue,
  pausedUntil,
}: { readonly queue: string } & Pick<OverviewView, 'pausedUntil'>) {
  return (
    <div class="line heading">
      <h1>
        <span class="hidden">Overview of </span>
        <bdi>{queue}</bdi>
      </h1>
      {pausedUntil !== null || shell.value?.control ? (
        <QueuePause pausedUntil={pausedUntil} />
      ) : null}
    </div>
  );
}

function Verdicts({ view }: { readonly view: OverviewView }) {
  const amiss = view.verdicts.filter(({ level }) => level !== 'ok');
  const notes = view.verdicts.filter(({ level }) => level === 'ok');
  const found = view.checks?.findings.filter(({ level }) => level !== 'ok') ?? [];
  // As many as the list has lines.
  const all = amiss.length + (found.length > 0 ? 1 : 0);
  const worst = [...amiss, ...found].some(({ level }) => level === 'error')
    ? 'error'
    : all > 0
      ? 'warning'
      : 'ok';
  const title =
    worst === 'ok'
      ? 'All is well'
      : worst === 'error'
        ? 'Something is wrong'
        : `${plural(all, 'thing')} to look at`;
  return (
    <section class={`verdict ${worst}`} aria-label="Is all well?">
      <p class="answer">{title}</p>
      <div class="said-of">
        <ul>
          {amiss.map(({ what, cure, request }, i) => (
            <li key={i}>
              <What text={what} request={request} />{' '}
              <span class="more">
                <Cure text={cure} />
              </span>
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
        </ul>
        {notes.length > 0 ? (
          <p class="more">
            {amiss.length > 0 ? 'Also: ' : ''}
            {notes.map(({ what, request }) => (
              <span key={what}>
                <What text={what} request={request} />{' '}
              </span>
            ))}
          </p>
        ) : null}
        {worst === 'ok' && notes.length === 0 ? <p class="more">{summary(view)}</p> : null}
      </div>
    </section>
  );
}

/** The pages that a verdict names. */
const NAMED = { 'See Workers': 'workers', 'See Errors': 'errors' } as const;

/** What is wrong, with a link to the request that it names. */
function What({
  text,
  request,
}: {
  readonly text: string;
  readonly request: Verdict['request'] | undefined;
}) {
  if (!request) return <>{text}</>;
  const { id, from } = request;
  return (
    <>
      {text.slice(0, from)}
      <RequestLink id={id} />
      {text.slice(from + id.length)}
    </>
  );
}

/** What to do, with a link to the page that it names. */
function Cure({ text }: { readonly text: string }) {
  for (const [words, page] of Object.entries(NAMED))
    if (text.startsWith(words))
      return (
        <>
          <a href={linkTo(page)}>{words}</a>
          {text.slice(words.length)}
        </>
      );
  return <>{text}</>;
}

function toChecks(): void {
  document.getElementById('checks')?.scrollIntoView();
}

function summary({ open, rate: settled, workers }: OverviewView): string {
  if (open === 0) return `Nothing is open. ${plural(workers.alive, 'worker')} ready.`;
  return `${plural(open, 'request')} open, ${rate(settled)} sub-requests settled per second.`;
}

function Tiles({ view }: { readonly view: OverviewView }) {
  const { workers, ended, oldest, index } = view;
  const trouble = [
    workers.silent > 0 ? `${workers.silent} silent` : '',
    workers.draining > 0 ? `${workers.draining} draining` : '',
    workers.stuck > 0 ? `${plural(workers.stuck, 'slot')} stuck` : '',
  ].filter(Boolean);
  // What is added up over the requests is a part of it until all are read.
  const soFar = index.complete ? '' : `of ${plural(index.rows, 'request')} read`;
  return (
    <dl class="tiles">
      <Tile
        name="Settled per second"
        title={`${SETTLED}: now, smoothed over about 8 seconds`}
        value={rate(view.rate)}
        more={soFar}
      />
      <Tile
        name="Running"
        title={RUNNING}
        value={count(view.running)}
        more={
          soFar ||
          // What a silent worker had counts as running until its lease ends.
          (view.running > workers.slots && workers.silent === 0 && workers.alive > 0
            ? 'some of them have just ended'
            : '')
        }
      />
      <Tile
        name="Ready"
        title="Sub-requests that wait for a slot, also those that are blocked: they cannot start yet, however many slots are free."
        value={count(view.ready)}
        more={
          soFar ||
          (view.blocked.count > 0
            ? `${count(view.blocked.count)} blocked: ${view.blocked.reasons.join(', ')}`
            : '')
        }
      />
      <Tile
        name="Delayed"
        value={count(view.delayed)}
        title="Sub-requests that wait for their next attempt."
        more={soFar}
      />
      <Tile
        name="Open requests"
        value={count(view.open)}
        more={[
          view.parked > 0 ? `${count(view.parked)} not served` : '',
          view.nextDue === null
            ? ''
            : `next held-back one starts ${until(view.nextDue, clock.value)}`,
        ]
          .filter(Boolean)
          .join(', ')}
      />
      <Tile
        name="Workers"
        value={count(workers.alive)}
        more={[plural(workers.slots, 'slot'), ...trouble].join(', ')}
        tone={workers.silent + workers.stuck > 0 ? 'warn' : ''}
      />
      <Tile
        name="Oldest waiting"
        title="The oldest request with ready sub-requests of which none runs. What is paused or held back is left out."
        value={oldest ? <Since at={oldest.createdAt} /> : 'none'}
        more={oldest ? <RequestLink id={oldest.id} /> : ''}
      />
      <Tile
        name="Ended"
        value={count(ended.succeeded + ended.failed + ended.cancelled)}
        more={
          <>
            <a href={linkTo('requests', '', { state: 'failed' })}>{count(ended.failed)} failed</a>,{' '}
            {count(ended.cancelled)} cancelled
          </>
        }
      />
    </dl>
  );
}

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
          { name: 'tried again', of: (point: Point) => point.retried * each, colour: 'warn' },
          { name: 'failed', of: (point: Point) => point.failed * each, colour: 'bad' },
        ]
      : []),
  ];
  return (
    <Panel
      title="Settled per second"
      about={SETTLED}
      aside={<Lines lines={lines} span={spanOf(chart)} />}
    >
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

function Slots({ chart }: { readonly chart: Drawn }) {
  const lines: Line[] = [
    { name: 'busy', of: ({ running }: Point) => running, colour: 'busy', isFilled: true },
    { name: 'slots', of: ({ slots }: Point) => slots, colour: 'quiet' },
  ];
  return (
    <Panel
      title="Busy slots, as reported"
      about="Slots in which a handler ran at the moment when their worker reported, each 1 to 5 seconds; what ran in between is not seen. An ended handler counts as running until its outcome is settled, so fewer slots may be busy than sub-requests run."
      aside={<Lines lines={lines} span={spanOf(chart)} />}
    >
      <Chart
        key={chart.from}
        points={chart.points}
        lines={lines}
        label="Busy slots"
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
              </span>
              <span>
                {row.rate > 0 ? perSecond(row.rate) : ''}
                {row.etaMs !== null ? `, ${timeLeft(row.etaMs)} left` : ''}
              </span>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** The greatest round number, such as 1, 2, 5, 10, that is no greater than `most`. */
function roundBelow(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most));
  return power * ([5, 2, 1].find((n) => n * power <= most) ?? 1);
}

/** Sub-requests by priority: a column for each of the hundred, and those that are not empty in words. */
function Backlog({ view }: { readonly view: OverviewView }) {
  const bars = new Map(view.backlog.map((bar) => [bar.priority, bar]));
  const sumOf = ({ ready, delayed, running }: BacklogBar) => ready + delayed + running;
  const most = Math.max(1, ...view.backlog.map(sumOf));
  const line = roundBelow(most);
  const fullest = [...view.backlog].sort((a, b) => sumOf(b) - sumOf(a)).slice(0, 4);
  const top = fullest.sort((a, b) => a.priority - b.priority);
  return (
    <Panel title="Backlog by priority" aside={<Legend names={['running', 'ready', 'delayed']} />}>
      <div
        class="backlog"
        aria-hidden="true"
        title="Heights are proportional; what would be too small to see is 3 pixels high."
      >
        {view.backlog.length > 0 ? (
          <span class="mark" style={{ bottom: `${(line / most) * 100}%` }}>
            <span class="mark-at">{count(line)}</span>
          </span>
        ) : null}
        {Array.from({ length: 100 }, (_, priority) => {
          const bar = bars.get(priority);
          return (
            <div
              key={priority}
              title={
                bar
                  ? `priority ${priority}: ${count(bar.ready)} ready, ${count(bar.running)} running, ${count(bar.delayed)} delayed`
                  : `priority ${priority}: empty`
              }
            >
              {bar && sumOf(bar) > 0 ? (
                <span class="column" style={{ height: `${(sumOf(bar) / most) * 100}%` }}>
                  {(['delayed', 'ready', 'running'] as const).map((name) =>
                    bar[name] > 0 ? (
                      <i key={name} class={`part ${name}`} style={{ flexGrow: bar[name] }} />
                    ) : null,
                  )}
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
        <caption class="hidden">The fullest priorities</caption>
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
    <Panel
      title="Errors by name"
      aside={
        <a href={linkTo('errors')}>
          {view.errorsRead > 0 ? `the last ${count(view.errorsRead)}` : 'all'}
        </a>
      }
    >
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
                {count(group.count)} of {count(view.errorsRead)}, latest <Ago at={group.lastAt} />
              </span>
            </div>
            <p class="message">
              <bdi>{group.message}</bdi>
            </p>
            <p class="small">
              the latest, in <RequestLink id={group.requestId} />
            </p>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
