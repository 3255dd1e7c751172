import type { Row } from '@piecework/views';
import { count } from '@piecework/views/format';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Act } from './act.js';

/*
 * What a request gets of the fleet: its limit and its priority.
 */

/** While the slider moves, a change is sent at most so often. */
const SEND_MS = 250;

/** The limit as a slider: each step is sent, and the bar below it shows on the same scale what runs. */
export function Limit({
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
        <span style={{ width: `${Math.max(0, Math.min(1, (running - 1) / (most - 1))) * 100}%` }} />
      </div>
      <div class="scale" aria-hidden="true">
        <span>1</span>
        <span>{most === slots ? `${count(slots)}, all slots` : count(most)}</span>
      </div>
      <p class="small">{count(running)} running. A change applies at once.</p>
    </div>
  );
}

export function Priority({ row, act }: { readonly row: Row; readonly act: Act }) {
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
