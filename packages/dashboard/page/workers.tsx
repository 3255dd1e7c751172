import type { WorkersView, WorkerView } from '@piecework/views';
import { bytes, count, duration, plural } from '@piecework/views/format';
import { useEffect, useRef } from 'preact/hooks';
import { useLive } from './live.js';
import { Ago, Chip, Pending, Problem, RequestLink, Since, Term } from './parts.js';
import { route } from './route.js';

const TONES: Readonly<Record<WorkerView['state'], string>> = {
  silent: 'bad',
  stuck: 'bad',
  unwell: 'warn',
  overdue: 'warn',
  drains: 'quiet',
  works: 'busy',
  idle: 'quiet',
};
/** The states as people say them. */
const WORDS: Readonly<Record<string, string>> = { works: 'working', drains: 'draining' };
const wordOf = (state: string) => WORDS[state] ?? state;
/** More slots than this are drawn as one bar. */
const MOST_CELLS = 100;

export function Workers() {
  const { queue } = route.value;
  const live = useLive<WorkersView>({ view: 'workers', queue });
  const { data } = live;
  if (!data) return <Pending live={live} />;
  const slots = data.workers.reduce((n, { concurrency }) => n + concurrency, 0);
  const busy = data.workers.reduce((n, { running }) => n + running, 0);
  const served = new Set(data.workers.map(tasksOf));
  // Said once where it is the same for all.
  const common = served.size === 1 ? [...served][0] : undefined;
  return (
    <>
      <h1>
        {plural(data.total, 'worker')}{' '}
        <span class="more">
          {count(busy)} of {plural(slots, 'slot')} busy
          {Object.entries(data.states)
            .map(([state, n]) => `, ${n} ${wordOf(state)}`)
            .join('')}
          {common === undefined ? '' : '; each serves '}
          {common === undefined ? null : <bdi>{common}</bdi>}
        </span>
      </h1>
      {live.problem ? <Problem {...live.problem} /> : null}
      {data.total === 0 ? (
        <p class="nothing">No worker is registered. Start one: piecework worker --handler FILE</p>
      ) : null}
      {data.workers.length < data.total ? (
        <p class="small">The first {data.workers.length} are shown.</p>
      ) : null}
      {data.total > 0 ? (
        <table class="list workers-table">
          <caption class="hidden">Workers, those in trouble first</caption>
          <thead>
            <tr>
              <th scope="col">Worker</th>
              <th scope="col">State</th>
              <th scope="col">Slots</th>
              <th scope="col">Longest running</th>
              {common === undefined ? <th scope="col">Tasks</th> : null}
              <th scope="col" class="n">
                <Term means={LOOP_DELAY}>Loop delay</Term>
              </th>
              <th scope="col" class="n">
                <Term means={MEMORY}>Memory</Term>
              </th>
              <th scope="col" class="n">
                Up
              </th>
              <th scope="col" class="n">
                Seen
              </th>
            </tr>
          </thead>
          <tbody>
            {data.workers.map((worker) => (
              <Line key={worker.id} worker={worker} showsTasks={common === undefined} />
            ))}
          </tbody>
        </table>
      ) : null}
    </>
  );
}

const LOOP_DELAY =
  'How late the event loop of its process was: high when handlers compute for long without await; the same for all workers of a process';
const MEMORY = 'Resident memory of its process: the same for all workers of a process';

/** How long it had run at the last sign of life: a shorter one may have ended since. */
function lasted({ seenAt }: WorkerView, { startedAt }: WorkerView['longest'][number]): string {
  const ms = seenAt - startedAt;
  return duration(ms).replace('.0', '');
}

const tasksOf = ({ tasks }: WorkerView) => (tasks === null ? 'all tasks' : tasks.join(', '));

function Line({
  worker,
  showsTasks,
}: {
  readonly worker: WorkerView;
  readonly showsTasks: boolean;
}) {
  const [run, ...others] = worker.longest;
  const isNamed = route.value.params.get('worker') === worker.id;
  const at = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (isNamed) at.current?.scrollIntoView({ block: 'center' });
  }, [isNamed]);
  return (
    <tr ref={at} class={isNamed ? 'named' : ''}>
      <th scope="row" class="name">
        <span class="id" title={`process ${worker.pid} on ${worker.host}`}>
          <bdi>{worker.id}</bdi>
        </span>
        {worker.mates > 0 ? (
          <span class="task">in one process with {plural(worker.mates, 'other')}</span>
        ) : null}
      </th>
      <td data-name="State">
        <Chip tone={TONES[worker.state]}>{wordOf(worker.state)}</Chip>
        {worker.why.length > 0 ? (
          <ul class="why">
            {worker.why.map((why) => (
              <li key={why}>{why}</li>
            ))}
          </ul>
        ) : null}
      </td>
      <td data-name="Slots">
        <Slots {...worker} />
      </td>
      <td class="wide" data-name="Longest running">
        {run ? (
          <>
            <RequestLink id={run.requestId} />
            <span class={run.isOverdue ? 'small overdue' : 'small'}>
              {' '}
              sub-request {run.index}, {lasted(worker, run)}
              {run.medianMs !== null ? `, usually ${duration(run.medianMs)}` : ''}
              {others.length > 0 ? `; and ${plural(others.length, 'other request')}` : ''}
            </span>
          </>
        ) : (
          <span class="none">nothing</span>
        )}
      </td>
      {showsTasks ? (
        <td class="small tasks" data-name="Tasks">
          <bdi>{tasksOf(worker)}</bdi>
        </td>
      ) : null}
      <td class={worker.eventLoopDelayMs === null ? 'n none' : 'n'} data-name="Loop delay">
        {worker.eventLoopDelayMs === null ? '–' : duration(worker.eventLoopDelayMs)}
      </td>
      <td class={worker.rssBytes === null ? 'n none' : 'n'} data-name="Memory">
        {worker.rssBytes === null ? '–' : bytes(worker.rssBytes)}
      </td>
      <td class="n" data-name="Up">
        <Since at={worker.startedAt} />
      </td>
      <td class="n" data-name="Seen">
        <Ago at={worker.seenAt} />
      </td>
    </tr>
  );
}

/** Each slot as a cell: stuck, busy or free. */
function Slots({ concurrency, running, leftovers }: WorkerView) {
  const label = `${running} of ${plural(concurrency, 'slot')} busy${leftovers > 0 ? `, ${leftovers} stuck` : ''}`;
  const shown = Math.min(concurrency, MOST_CELLS);
  const scale = shown / Math.max(1, concurrency);
  const stuck = Math.ceil(leftovers * scale);
  const busy = Math.ceil(running * scale);
  return (
    <>
      <span class="cells" role="img" aria-label={label}>
        {Array.from({ length: shown }, (_, i) => (
          <i key={i} class={i < stuck ? 'stuck' : i < stuck + busy ? 'busy' : ''} />
        ))}
      </span>
      <span class="small">
        {' '}
        {running}/{concurrency}
      </span>
    </>
  );
}
