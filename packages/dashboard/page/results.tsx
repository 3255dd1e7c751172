import type { ResultsPage, Row, ValueView } from '@piecework/views';
import { count, duration, plural } from '@piecework/views/format';
import { useState } from 'preact/hooks';
import { ask } from './live.js';
import { Panel, Problem, Scrolls, Verbatim } from './parts.js';
import { route } from './route.js';

export function Value({ value }: { readonly value: ValueView }) {
  if (value.hidden || value.text === '') return null;
  return (
    <>
      <Verbatim text={value.text} label="Value" />
      {value.cut ? <p class="small">It is longer; the rest is not shown.</p> : null}
    </>
  );
}

/** Results by page, when somebody asks for them. */
export function Results({ row }: { readonly row: Row }) {
  const [pages, setPages] = useState<readonly string[]>([]);
  const [page, setPage] = useState<ResultsPage | undefined>(undefined);
  const [problem, setProblem] = useState('');
  const read = async (cursors: readonly string[]) => {
    const query = new URLSearchParams({
      queue: route.value.queue,
      id: row.id,
      cursor: cursors.at(-1) ?? '',
    });
    try {
      setPage(await ask<ResultsPage>(`api/results?${query}`));
      setPages(cursors);
      setProblem('');
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  const { succeeded, failed } = row.counts;
  const settled = succeeded + failed;
  const said =
    failed > 0
      ? `${plural(settled, 'outcome')}: ${count(succeeded)} succeeded, ${count(failed)} failed`
      : count(succeeded);
  return (
    <Panel title="Results" aside={`${said}${row.outcome ? '' : ' so far'}`}>
      {problem ? <Problem message={problem} /> : null}
      {page === undefined ? (
        settled === 0 ? (
          <p class="nothing">There is none yet.</p>
        ) : (
          <button type="button" onClick={() => void read([''])}>
            Show them
          </button>
        )
      ) : (
        <>
          {page.rows.length === 0 ? <p class="nothing">There is none yet behind these.</p> : null}
          <Scrolls label="Results">
            <table class="list dense">
              <caption class="hidden">Results in the order of their ends</caption>
              <thead>
                <tr>
                  <th scope="col" class="n">
                    Index
                  </th>
                  <th scope="col">Outcome</th>
                  <th scope="col">Value</th>
                  <th scope="col" class="n">
                    Took
                  </th>
                </tr>
              </thead>
              <tbody>
                {page.rows.map((one) => (
                  <tr key={one.index}>
                    <th scope="row" class="n">
                      {one.index}
                    </th>
                    <td class={one.status === 'failed' ? 'bad' : ''}>{one.status}</td>
                    <td class="small">
                      {one.value.hidden || one.value.text === '' ? (
                        one.value.about
                      ) : (
                        <details>
                          <summary>{one.value.about}</summary>
                          <Value value={one.value} />
                        </details>
                      )}
                    </td>
                    <td class={one.durationMs === null ? 'n none' : 'n'}>
                      {one.durationMs === null ? '–' : duration(one.durationMs)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scrolls>
          <div class="buttons">
            <button
              type="button"
              disabled={pages.length < 2}
              onClick={() => void read(pages.slice(0, -1))}
            >
              Previous
            </button>
            <button
              type="button"
              disabled={page.cursor === ''}
              onClick={() => void read([...pages, page.cursor])}
            >
              Next
            </button>
            <button type="button" onClick={() => setPage(undefined)}>
              Hide
            </button>
          </div>
        </>
      )}
    </Panel>
  );
}
