import { clockTime } from '@piecework/views/format';
import { shell } from '../live.js';
import { Said, useAct } from './act.js';

const untilWhen = (pausedUntil: number) =>
  pausedUntil > 0 ? `until ${clockTime(pausedUntil)}` : 'until it is resumed';

/** Pause and resume of the whole queue. */
export function QueuePause({ pausedUntil }: { readonly pausedUntil: number | null }) {
  const { act, said, isBusy } = useAct();
  const isPaused = pausedUntil !== null;
  if (pausedUntil !== null && !shell.value?.control)
    return <p class="more">Paused {untilWhen(pausedUntil)}</p>;
  return (
    <div class="queue-pause">
      {isPaused ? <span class="more">Paused {untilWhen(pausedUntil)}</span> : null}
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
