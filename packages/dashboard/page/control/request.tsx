import type { RequestView } from '@piecework/views';
import { useState } from 'preact/hooks';
import { Said, useAct } from './act.js';
import { Cancel, Drop } from './endings.js';
import { Redrive } from './redrive.js';
import { Limit, Priority } from './share.js';

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
            title="Nothing more of it starts; results and failures stay"
            disabled={isBusy || row.status === 'cancelling'}
            onClick={() => setAsked('cancel')}
          >
            Cancel …
          </button>
        )}
        {isOver && row.counts.failed > 0 ? (
          <button
            type="button"
            title="Run failed sub-requests again"
            disabled={isBusy}
            onClick={() => setAsked('redrive')}
          >
            Redrive …
          </button>
        ) : null}
        <button
          type="button"
          class="danger"
          title="Removes it with its results, failures and everything else"
          disabled={isBusy}
          onClick={() => setAsked('drop')}
        >
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
