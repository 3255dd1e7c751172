import { until } from '../format.js';
import { clock, shell } from '../live.js';
import { Said, useAct } from './act.js';

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
