import type { BesideView } from '../src/shape/views.js';
import { count, until } from './format.js';
import { clock, useLive } from './live.js';
import { Ago, Panel, Pending, Problem } from './parts.js';

export function Beside() {
  const live = useLive<BesideView>({ view: 'beside' });
  const { data } = live;
  if (!data) return <Pending live={live} />;
  return (
    <>
      <h1>
        Other queues <span class="more">retry queues, schedulers and id queues</span>
      </h1>
      <div class="grid three">
        {data.queues.map((queue) => {
          return (
            <Panel key={`${queue.kind} ${queue.name}`} title={queue.name} aside={queue.kind}>
              {queue.problem ? <Problem message={queue.problem} /> : null}
              <dl class="tiles tight">
                {queue.counts.map(({ label, n }) => (
                  <div class="tile" key={label}>
                    <dt>{label}</dt>
                    <dd>
                      <strong>{count(n)}</strong>
                    </dd>
                  </div>
                ))}
                <div class="tile">
                  <dt>{queue.nextIs}</dt>
                  <dd>
                    <strong>
                      {queue.next === null
                        ? '–'
                        : queue.next <= clock.value
                          ? queue.kind === 'id queue'
                            ? 'overdue'
                            : 'now'
                          : until(queue.next, clock.value)}
                    </strong>
                  </dd>
                </div>
              </dl>
              {queue.failures.length > 0 ? (
                <ul class="errors">
                  {queue.failures.map(({ key, at, message }) => (
                    <li key={`${key} ${at}`}>
                      <div class="line">
                        <span class="id">
                          <bdi>{key}</bdi>
                        </span>
                        <span class="small">
                          <Ago at={at} />
                        </span>
                      </div>
                      <p class="message">
                        <bdi>{message}</bdi>
                      </p>
                    </li>
                  ))}
                </ul>
              ) : null}
            </Panel>
          );
        })}
      </div>
    </>
  );
}
