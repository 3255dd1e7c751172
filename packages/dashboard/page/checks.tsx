import type { OverviewView, Verdict } from '@piecework/views';
import { plural } from '@piecework/views/format';
import { useState } from 'preact/hooks';
import { ask } from './live.js';
import { Ago, Chip, Panel } from './parts.js';

/** What the doctor found, as words with their cure. */
export function Checks({
  view: { checks, open },
  queue,
}: {
  readonly view: OverviewView;
  readonly queue: string;
}) {
  const [said, setSaid] = useState('');
  const check = async () => {
    try {
      const { begun } = await ask<{ begun: boolean }>('api/check', { queue });
      setSaid(begun ? '' : 'They ran only seconds ago.');
    } catch (error) {
      setSaid((error as Error).message);
    }
  };
  const findings = checks?.findings ?? [];
  const amiss = findings.filter(({ level }) => level !== 'ok');
  const fine = findings.length - amiss.length;
  const aside = (
    <>
      <span role="status">
        {said ||
          (checks?.busy ? 'checking …' : checks && checks.at > 0 ? <Ago at={checks.at} /> : '')}
      </span>{' '}
      <button type="button" onClick={() => void check()} disabled={checks?.busy ?? false}>
        Check now
      </button>
    </>
  );
  return (
    <div id="checks">
      <Panel title="Checks of servers and queue" aside={aside}>
        {checks === null ? (
          <p class="nothing">
            {open > 500
              ? 'They read every open request: with so many they run when you ask.'
              : 'They have not run yet.'}
          </p>
        ) : null}
        <ul class="findings">
          {amiss.map((finding) => (
            <FindingLine key={finding.what} {...finding} />
          ))}
        </ul>
        {fine > 0 ? (
          <details>
            <summary>{plural(fine, 'check')} found nothing amiss</summary>
            <ul class="findings">
              {findings
                .filter(({ level }) => level === 'ok')
                .map((finding) => (
                  <FindingLine key={finding.what} {...finding} />
                ))}
            </ul>
          </details>
        ) : null}
      </Panel>
    </div>
  );
}

const TONES = { ok: 'good', warning: 'warn', error: 'bad' };

function FindingLine({ level, what, cure }: Verdict) {
  return (
    <li>
      <Chip tone={TONES[level]}>{level}</Chip>
      <div>
        {what}
        {cure ? <p class="more">{cure}</p> : null}
      </div>
    </li>
  );
}
