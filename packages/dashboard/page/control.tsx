import { useEffect, useRef, useState } from 'preact/hooks';
import type { RequestView, Row } from '../src/shape/views.js';
import { count, until } from './format.js';
import { ask, clock, shell } from './live.js';
import { Dialog } from './parts.js';
import { linkTo, route } from './route.js';

/** Calls the server, and keeps what it said. */
function useAct() {
  const [said, setSaid] = useState<{ readonly text: string; readonly isBad: boolean }>({
    text: '',
    isBad: false,
  });
  const [isBusy, setBusy] = useState(false);
  const act = async (action: string, body: object, done: string): Promise<boolean> => {
    setBusy(true);
    try {
      await ask(`api/control/${action}`, { queue: route.value.queue, ...body });
      setSaid({ text: done, isBad: false });
      return true;
    } catch (error) {
      setSaid({ text: (error as Error).message, isBad: true });
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { act, said, isBusy };
}

function Said({ text, isBad }: { readonly text: string; readonly isBad: boolean }) {
  return (
    <p class={isBad ? 'said bad' : 'said'} role={isBad ? 'alert' : 'status'}>
      {text}
    </p>
  );
}

/** Pause and resume of the whole queue. */
export function QueuePause({ pausedUntil }: { readonly pausedUntil: number | null }) {
  const { act, said, isBusy } = useAct();
  const isPaused = pausedUntil !== null;
  if (!shell.value?.control)
    return (
      <p class="more">
        Paused {pausedUntil ? until(pausedUntil, clock.value) : 'until it is resumed'}.
      </p>
    );
  return (
    <div class="queue-pause">
      <Said {...said} />
      {isPaused ? (
        <button
          type="button"
          disabled={isBusy}
          onClick={() => void act('resume-queue', {}, 'Resumed.')}
        >
          Resume the queue
        </button>
      ) : (
        <button
          type="button"
          disabled={isBusy}
          onClick={() => void act('pause-queue', {}, 'Paused.')}
        >
          Pause the queue
        </button>
      )}
    </div>
  );
}

/** Live control of one request. */
export function Control({ view }: { readonly view: RequestView }) {
  const { act, said, isBusy } = useAct();
  const [asked, setAsked] = useState<'cancel' | 'drop' | 'redrive' | undefined>(undefined);
  const { row } = view;
  const isOver = row.status === 'complete';
  const isPaused = row.waitingFor === 'resume';
  const { id } = row;
  return (
    <>
      {isOver ? null : (
        <>
          <Limit row={row} slots={view.slots} act={act} />
          <Priority row={row} act={act} />
        </>
      )}
      <div class="buttons">
        {isOver ? null : isPaused ? (
          <button
            type="button"
            disabled={isBusy}
            onClick={() => void act('resume', { id }, 'Resumed.')}
          >
            Resume
          </button>
        ) : (
          <button
            type="button"
            disabled={isBusy}
            onClick={() => void act('pause', { id }, 'Paused: what runs may end.')}
          >
            Pause
          </button>
        )}
        {isOver ? null : (
          <button
            type="button"
            disabled={isBusy || row.status === 'cancelling'}
            onClick={() => setAsked('cancel')}
          >
            Cancel …
          </button>
        )}
        {isOver && row.counts.failed > 0 ? (
          <button type="button" disabled={isBusy} onClick={() => setAsked('redrive')}>
            Redrive …
          </button>
        ) : null}
        <button type="button" class="danger" disabled={isBusy} onClick={() => setAsked('drop')}>
          Drop …
        </button>
      </div>
      <Said {...said} />
      {asked === 'cancel' ? (
        <Cancel
          row={row}
          onClose={() => setAsked(undefined)}
          act={() => act('cancel', { id }, 'Cancelled.')}
        />
      ) : null}
      {asked === 'drop' ? (
        <Drop
          id={id}
          onClose={() => setAsked(undefined)}
          act={(typed) => act('drop', { id, typed }, 'Dropped.')}
        />
      ) : null}
      {asked === 'redrive' ? (
        <Redrive
          view={view}
          onClose={() => setAsked(undefined)}
          act={(which) => act('redrive', { id, ...which }, 'It runs again.')}
        />
      ) : null}
    </>
  );
}

type Act = (action: string, body: object, done: string) => Promise<boolean>;

/** While the slider moves, a change is sent at most so often. */
const SEND_MS = 250;

/** The limit as a slider: each step is sent, and the bar of what runs beside it follows. */
function Limit({
  row,
  slots,
  act,
}: {
  readonly row: Row;
  readonly slots: number;
  readonly act: Act;
}) {
  const [wanted, setWanted] = useState<number | undefined>(undefined);
  const sent = useRef<number | undefined>(undefined);
  const timer = useRef<number | undefined>(undefined);
  const limit = wanted ?? row.limit;
  const most = Math.max(slots, row.limit ?? 0, wanted ?? 0, 10);
  const { running } = row.counts;
  // The server has caught up with the slider.
  useEffect(() => {
    if (wanted !== undefined && row.limit === wanted) setWanted(undefined);
  }, [row.limit, wanted]);
  const send = (value: number | null) => {
    clearTimeout(timer.current);
    const words = value === null ? 'No limit.' : `Limit ${count(value)}.`;
    timer.current = window.setTimeout(
      () => void act('update', { id: row.id, limit: value }, words),
      SEND_MS,
    );
  };
  const choose = (value: number) => {
    if (!Number.isFinite(value) || value < 1) return;
    setWanted(value);
    sent.current = value;
    send(value);
  };
  return (
    <div class="limit">
      <div class="line">
        <label for="limit">Limit: how many run at once</label>
        <output for="limit">{limit === null ? 'none' : count(limit)}</output>
      </div>
      <input
        id="limit"
        type="range"
        min="1"
        max={most}
        value={limit ?? most}
        aria-valuetext={limit === null ? 'no limit' : String(limit)}
        onInput={({ currentTarget }) => choose(currentTarget.valueAsNumber)}
      />
      <div class="effect" aria-hidden="true">
        <span style={{ width: `${Math.min(100, (running / most) * 100)}%` }} />
      </div>
      <div class="line small">
        <span>
          {count(running)} running; {count(slots)} slots in the fleet
        </span>
        <span class="exact">
          <input
            type="number"
            min="1"
            max="1000000"
            aria-label="Limit, exactly"
            value={limit ?? ''}
            placeholder="none"
            onChange={({ currentTarget }) => choose(currentTarget.valueAsNumber)}
          />
          <button
            type="button"
            disabled={limit === null}
            onClick={() => {
              setWanted(undefined);
              send(null);
            }}
          >
            No limit
          </button>
        </span>
      </div>
    </div>
  );
}

function Priority({ row, act }: { readonly row: Row; readonly act: Act }) {
  return (
    <label class="line priority">
      Priority, 0 is served first
      <input
        type="number"
        min="0"
        max="99"
        value={row.priority}
        onChange={({ currentTarget }) => {
          const priority = currentTarget.valueAsNumber;
          if (priority >= 0 && priority <= 99)
            void act('update', { id: row.id, priority }, `Priority ${priority}.`);
        }}
      />
    </label>
  );
}

function Cancel({
  row,
  onClose,
  act,
}: {
  readonly row: Row;
  readonly onClose: () => void;
  readonly act: () => Promise<boolean>;
}) {
  const { ready, delayed, running } = row.counts;
  return (
    <Dialog title="Cancel this request?" onClose={onClose}>
      <p>
        {count(ready + delayed)} sub-requests do not start any more, and {count(running)} running
        handlers are aborted. Results and failures stay.
      </p>
      <form method="dialog" class="buttons">
        <button type="submit">Keep it</button>
        <button type="submit" class="danger" onClick={() => void act()}>
          Cancel the request
        </button>
      </form>
    </Dialog>
  );
}

/** Everything of it is lost, so the id must be typed. */
function Drop({
  id,
  onClose,
  act,
}: {
  readonly id: string;
  readonly onClose: () => void;
  readonly act: (typed: string) => Promise<boolean>;
}) {
  const [typed, setTyped] = useState('');
  return (
    <Dialog title="Drop this request?" onClose={onClose}>
      <p>
        The request is removed with its results, failures and everything else. This cannot be
        undone.
      </p>
      <form method="dialog">
        <label class="typed">
          Type its id to confirm:{' '}
          <code>
            <bdi>{id}</bdi>
          </code>
          <input
            value={typed}
            autocomplete="off"
            spellcheck={false}
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
        </label>
        <div class="buttons">
          <button
            type="button"
            onClick={({ currentTarget }) => currentTarget.closest('dialog')?.close()}
          >
            Keep it
          </button>
          <button
            type="submit"
            class="danger"
            disabled={typed !== id}
            onClick={() => {
              void act(typed).then((done) => {
                if (done) location.hash = linkTo('requests');
              });
            }}
          >
            Drop the request
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Redrive(props: {
  readonly view: RequestView;
  readonly onClose: () => void;
  readonly act: (which: object) => Promise<boolean>;
}) {
  const [which, setWhich] = useState('all');
  const [index, setIndex] = useState('');
  const { failures, row } = props.view;
  const isIndex = which === 'index';
  const body = isIndex
    ? { indexes: [Number(index)] }
    : which === 'all'
      ? {}
      : { name: which.slice('name '.length) };
  return (
    <Dialog title="Run failed sub-requests again" onClose={props.onClose}>
      <form method="dialog">
        <fieldset class="choices">
          <legend class="hidden">Which</legend>
          <label>
            <input
              type="radio"
              name="which"
              checked={which === 'all'}
              onChange={() => setWhich('all')}
            />
            all {count(row.counts.failed)}
          </label>
          {failures.map(({ name, count: n }) => (
            <label key={name}>
              <input
                type="radio"
                name="which"
                checked={which === `name ${name}`}
                onChange={() => setWhich(`name ${name}`)}
              />
              those of{' '}
              <b>
                <bdi>{name}</bdi>
              </b>{' '}
              ({count(n)})
            </label>
          ))}
          <label>
            <input type="radio" name="which" checked={isIndex} onChange={() => setWhich('index')} />
            one, by its index
            <input
              type="number"
              min="0"
              aria-label="Index"
              value={index}
              onInput={({ currentTarget }) => {
                setWhich('index');
                setIndex(currentTarget.value);
              }}
            />
          </label>
        </fieldset>
        <p class="more">The results of the others stay. It is a new generation of the request.</p>
        <div class="buttons">
          <button
            type="button"
            onClick={({ currentTarget }) => currentTarget.closest('dialog')?.close()}
          >
            Leave it
          </button>
          <button
            type="submit"
            class="main"
            disabled={isIndex && !/^\d+$/.test(index)}
            onClick={() => void props.act(body)}
          >
            Redrive
          </button>
        </div>
      </form>
    </Dialog>
  );
}
