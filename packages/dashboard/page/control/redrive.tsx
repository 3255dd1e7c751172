import type { RequestView } from '@piecework/views';
import { count } from '@piecework/views/format';
import { useState } from 'preact/hooks';
import { Dialog } from '../parts.js';

/** Which failures run again: all, those of one class, or one. */
export function Redrive(props: {
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
