import type { Row } from '@piecework/views';
import { count } from '@piecework/views/format';
import { useState } from 'preact/hooks';
import { Dialog } from '../parts.js';
import { linkTo } from '../route.js';

/*
 * The questions before a request is cancelled or dropped.
 */

export function Cancel({
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
        {count(ready + delayed)} sub-requests will not start, and {count(running)} running handlers
        will be aborted. Results and failures stay.
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
export function Drop({
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
