import type { RequestView } from '@piecework/views';
import { costParts, count, duration, plural, time, until } from '@piecework/views/format';
import { clock } from './live.js';
import { Ago, Panel, Verbatim } from './parts.js';

interface Event {
  readonly at: number;
  readonly what: string;
  readonly key?: string;
}

/** What happened to it, generation by generation, and what will, in the order of time. */
export function Life({ view: { row, generations } }: { readonly view: RequestView }) {
  const now = clock.value;
  const past = generations.flatMap(
    (
      {
        generation,
        beganAt,
        completedAt,
        outcome,
        endReason,
        succeeded,
        failed,
        cancelled,
        redriven,
      },
      i,
    ) => {
      const isAlone = failed === 0 || cancelled === 0;
      const lost = Object.entries({ failed, cancelled })
        .filter(([, n]) => n > 0)
        .map(([word, n]) => (isAlone && word === outcome ? count(n) : `${count(n)} ${word}`));
      const all = plural(succeeded + failed + cancelled, 'sub-request');
      const began: Event = {
        at: beganAt,
        key: `${generation} began`,
        what: redriven > 0 ? `redriven: ${plural(redriven, 'sub-request')} again` : 'redriven',
      };
      const ended: Event = {
        at: completedAt ?? 0,
        key: `${generation} ended`,
        what: `${outcome}${endReason ? ` by ${endReason}` : ''}${lost.length > 0 ? `: ${lost.join(', ')} of ${all}` : ''}`,
      };
      // An older generation may be forgotten: then the first that is known began by a redrive, too.
      const isFirst = i === 0 && beganAt === row.createdAt;
      return [...(isFirst ? [] : [began]), ...(completedAt === undefined ? [] : [ended])];
    },
  );
  const events: Event[] = [
    { at: row.createdAt, what: 'submitted' },
    ...past,
    ...(row.heldUntil > 0 ? [{ at: row.heldUntil, what: 'held back until' }] : []),
    ...(row.deadline > 0 && row.completedAt === 0 ? [{ at: row.deadline, what: 'deadline' }] : []),
    ...(row.etaMs !== null ? [{ at: now + row.etaMs, what: 'done, at this rate' }] : []),
    ...(row.completedAt === 0 ? [{ at: now, what: 'now' }] : []),
  ].sort((a, b) => a.at - b.at);
  return (
    <Panel title="History" aside={generations.length > 1 ? `generation ${generations.length}` : ''}>
      <ol class="life">
        {events.map(({ at, what, key = what }) => (
          <li key={key} class={at > now ? 'ahead' : what === 'now' ? 'now' : ''}>
            <span>{what}</span>
            <span class="small" title={time(at)}>
              {what === 'now' ? '' : at > now ? until(at, now) : <Ago at={at} />}
            </span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

/** What its attempts have cost, in all generations. */
export function Cost({ view: { cost, generations } }: { readonly view: RequestView }) {
  return (
    <Panel title="Cost" aside={generations.length > 1 ? 'of all generations' : ''}>
      <dl class="facts">
        {costParts(cost).map(([name, amount]) => (
          <>
            <dt>{name}</dt>
            <dd>{amount}</dd>
          </>
        ))}
      </dl>
    </Panel>
  );
}

/** An option: what was asked for, and whether that is what everybody gets. */
interface Fact {
  readonly name: string;
  readonly value: string;
  readonly isDefault: boolean;
  /** What it is now, if it was changed since; otherwise ''. */
  readonly now?: string;
}

const limitText = (limit: number | null) => (limit === null ? 'none' : count(limit));

function factsOf({ options, row }: RequestView): Fact[] {
  const { backoff, attemptTimeoutMs, deadlineMs, delayMs, runAt } = options;
  const since = (before: string, now: string) => (before === now ? '' : now);
  const jitter = backoff?.jitter ? `, ${Math.round(backoff.jitter * 100)} % jitter` : '';
  const wait =
    backoff === undefined
      ? 'at once'
      : backoff.type === 'exponential'
        ? `after ${duration(backoff.delayMs ?? 0)}, doubled each time${jitter}`
        : backoff.type === 'custom'
          ? 'by a function of its worker'
          : `after ${duration(backoff.delayMs ?? 0)}${jitter}`;
  const start =
    runAt !== undefined
      ? time(runAt)
      : delayMs
        ? `${duration(delayMs)} after its creation`
        : 'at once';
  return [
    { name: 'Task', value: options.task ?? 'none', isDefault: false },
    {
      name: 'Priority',
      value: String(options.priority),
      isDefault: false,
      now: since(String(options.priority), String(row.priority)),
    },
    {
      name: 'Limit',
      value: limitText(options.limit),
      isDefault: false,
      now: since(limitText(options.limit), limitText(row.limit)),
    },
    { name: 'Attempts', value: count(options.attempts), isDefault: options.attempts === 1 },
    { name: 'Tries again', value: wait, isDefault: backoff === undefined },
    {
      name: 'Time of an attempt',
      value: attemptTimeoutMs === undefined ? 'no bound' : duration(attemptTimeoutMs),
      isDefault: attemptTimeoutMs === undefined,
    },
    {
      name: 'May fail',
      value: `${options.toleratedFailures === 0 ? 'none' : options.toleratedFailures}${options.onExceeded === 'cancel' ? ', else it ends' : ''}`,
      isDefault: options.toleratedFailures === 0 && options.onExceeded === 'continue',
    },
    {
      name: 'Deadline',
      value: deadlineMs === undefined ? 'none' : `${duration(deadlineMs)} after its creation`,
      isDefault: deadlineMs === undefined,
    },
    {
      name: 'Starts',
      value: `${start}${options.expedite ? ', then before others' : ''}`,
      isDefault: start === 'at once',
    },
    {
      name: 'Crashes',
      value: `fails after at least ${count(options.maxCrashes)}`,
      isDefault: options.maxCrashes === 3,
    },
    {
      name: 'Window',
      value: options.window === 0 ? 'no bound' : count(options.window),
      isDefault: options.window === 0,
    },
    {
      name: 'Results',
      value: options.results === 'keep' ? 'kept' : 'not kept',
      isDefault: options.results === 'keep',
    },
    {
      name: 'Kept for',
      value: duration(options.retentionMs),
      isDefault: options.retentionMs === 86_400_000,
    },
    {
      name: 'If its producer is lost',
      value: options.onProducerLost === 'seal' ? 'it is sealed' : 'it is cancelled',
      isDefault: options.onProducerLost === 'cancel',
    },
    {
      name: 'A producer is lost',
      value: `after ${duration(options.producerLeaseMs)}`,
      isDefault: options.producerLeaseMs === 30_000,
    },
    { name: 'Timing', value: options.timing ? 'recorded' : 'no', isDefault: !options.timing },
  ];
}

export function Facts({ view }: { readonly view: RequestView }) {
  const { metadata } = view.row;
  const facts = factsOf(view);
  const asked = facts.filter(({ isDefault }) => !isDefault);
  const others = facts.filter(({ isDefault }) => isDefault);
  return (
    <Panel title="As submitted">
      <dl class="facts">
        <List facts={asked} />
        {metadata ? (
          <>
            <dt>Metadata</dt>
            <dd>
              <Verbatim text={metadata} label="Metadata" />
            </dd>
          </>
        ) : null}
      </dl>
      <details class="others">
        <summary>{plural(others.length, 'option')} with their defaults</summary>
        <dl class="facts quiet">
          <List facts={others} />
        </dl>
      </details>
    </Panel>
  );
}

function List({ facts }: { readonly facts: readonly Fact[] }) {
  return facts.map(({ name, value, now }) => (
    <>
      <dt>{name}</dt>
      <dd>
        <bdi>{value}</bdi>
        {now ? (
          <span class="small">
            {' '}
            now <b>{now}</b>
          </span>
        ) : null}
      </dd>
    </>
  ));
}
