import type { ErrorRow, ErrorsView } from '@piecework/views';
import { count, timeLeft } from '@piecework/views/format';
import { useLive } from './live.js';
import { Clock, Pending, Problem, RequestLink, WorkerLink } from './parts.js';
import { route } from './route.js';

const MOST_NAMES = 8;

export function Errors() {
  const { queue } = route.value;
  const live = useLive<ErrorsView>({ view: 'errors', queue });
  const { data } = live;
  if (!data) return <Pending live={live} />;
  return (
    <>
      <h1>
        The last errors <span class="more">of {queue}: attempts that failed, the latest first</span>
      </h1>
      <Names errors={data.errors} />
      {live.problem ? <Problem {...live.problem} /> : null}
      {data.errors.length === 0 ? <p class="nothing">No attempt has failed lately.</p> : null}
      {data.errors.length > 0 ? (
        <table class="list errors-table">
          <caption class="hidden">The last errors</caption>
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">Error</th>
              <th scope="col">Request</th>
              <th scope="col" class="n">
                Index
              </th>
              <th scope="col" class="n">
                Attempt
              </th>
              <th scope="col">Worker</th>
            </tr>
          </thead>
          <tbody>
            {data.errors.map((error) => (
              <tr key={`${error.requestId} ${error.index} ${error.attempt} ${error.at}`}>
                <td data-name="When" class="when">
                  <Clock at={error.at} />
                </td>
                <td class="wide" data-name="Error">
                  <b class="bad">
                    <bdi>{error.name}</bdi>
                  </b>{' '}
                  <bdi class="message">{error.message}</bdi>
                </td>
                <th scope="row" class="name" data-name="Request">
                  <RequestLink id={error.requestId} />
                  {error.task ? (
                    <span class="task">
                      <bdi>{error.task}</bdi>
                    </span>
                  ) : null}
                </th>
                <td class="n" data-name="Index">
                  {error.index}
                </td>
                <td class="n" data-name="Attempt">
                  {error.attempt}
                </td>
                <td class="small worker" data-name="Worker">
                  <WorkerLink id={error.worker} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </>
  );
}

/** What they have in common: each name and task once, the most frequent first. */
function Names({ errors }: { readonly errors: readonly ErrorRow[] }) {
  const groups = new Map<string, { readonly name: string; readonly task: string; n: number }>();
  for (const { name, task } of errors) {
    const key = JSON.stringify([name, task]);
    const group = groups.get(key) ?? { name, task, n: 0 };
    group.n += 1;
    groups.set(key, group);
  }
  const times = errors.map(({ at }) => at);
  const lasted = Math.max(...times) - Math.min(...times);
  const span = `Of the last ${count(errors.length)}, within ${timeLeft(Math.max(1_000, lasted))}`;
  const sorted = [...groups.values()].sort((a, b) => b.n - a.n);
  if (sorted.length === 0) return null;
  return (
    <ul class="classes" aria-label={`By name, of the last ${count(errors.length)}`}>
      <li class="small">{span}:</li>
      {sorted.slice(0, MOST_NAMES).map(({ name, task, n }) => (
        <li key={JSON.stringify([name, task])}>
          {count(n)} ×{' '}
          <b class="bad">
            <bdi>{name}</bdi>
          </b>
          {task ? (
            <>
              {' '}
              in <bdi>{task}</bdi>
            </>
          ) : null}
        </li>
      ))}
      {sorted.length > MOST_NAMES ? <li>and {sorted.length - MOST_NAMES} more</li> : null}
    </ul>
  );
}
