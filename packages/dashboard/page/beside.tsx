import type { BesideView } from '@piecework/views';
import { count, until } from '@piecework/views/format';
import { clock, useLive } from './live.js';
import { Ago, Panel, Pending, Problem, Since, Tile } from './parts.js';

/** What is due for longer than this is late, in ms: whoever takes it is slow, or there is nobody. */
const LATE_MS = 10_000;

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
                  <Tile key={label} name={label} value={count(n)} />
                ))}
                <Next queue={queue} />
              </dl>
              {queue.failures.length > 0 ? (
                <ul class="errors" aria-label="Latest failures">
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

/** When the next is due, and for how long it has been. */
function Next({ queue: { nextIs, next } }: { readonly queue: BesideView['queues'][number] }) {
  if (next === null) return <Tile name={nextIs} value="–" />;
  const lateMs = clock.value - next;
  if (lateMs > LATE_MS)
    return <Tile name={nextIs} value="late by" more={<Since at={next} />} tone="warn" />;
  return <Tile name={nextIs} value={lateMs >= 0 ? 'now' : until(next, clock.value)} />;
}
