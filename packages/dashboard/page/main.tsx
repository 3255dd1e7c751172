import { render } from 'preact';
import './page.css';
import 'uplot/dist/uPlot.min.css';
import { Beside } from './beside.js';
import { Errors } from './errors.js';
import { connection, loadShell, shell, shellProblem } from './live.js';
import { Overview } from './overview.js';
import { OneRequest } from './request.js';
import { Requests } from './requests.js';
import { linkTo, route } from './route.js';
import { showHidden } from './shown.js';
import { switchTheme, theme } from './theme.js';
import { Workers } from './workers.js';

const PAGES = [
  ['overview', 'Overview'],
  ['requests', 'Requests'],
  ['workers', 'Workers'],
  ['errors', 'Errors'],
  ['beside', 'Other queues'],
] as const;

const SIGNS = {
  live: 'Live',
  connecting: 'Connecting',
  away: 'No connection',
  'signed out': 'Signed out',
};

function App() {
  const known = shell.value;
  if (!known) return <main class="start">{shellProblem.value || 'Loading …'}</main>;
  const { page, queue, id } = route.value;
  const isKnown = known.queues.includes(queue);
  const named = PAGES.find(([name]) => name === page)?.[1];
  document.title = `${page === 'request' ? id : (named ?? 'Overview')} · ${queue} · Piecework`;
  return (
    <>
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <Head />
      <main id="main" tabIndex={-1}>
        {connection.value === 'signed out' ? (
          <p class="problem" role="alert">
            You are no longer signed in. <a href=".">Sign in again</a>
          </p>
        ) : null}
        {isKnown ? (
          <Page key={`${queue}/${page}/${id}`} />
        ) : (
          <p class="problem">This dashboard does not show the queue {queue}.</p>
        )}
      </main>
    </>
  );
}

/** No link: the hash is the address of the page. */
function skip(): void {
  document.getElementById('main')?.focus();
}

function Head() {
  const { queues, visitor, control, beside } = shell.value ?? {
    queues: [],
    visitor: '',
    control: false,
    beside: false,
  };
  const { page, queue } = route.value;
  const current = page === 'request' ? 'requests' : page;
  return (
    <header>
      <a class="brand" href={linkTo('overview')} aria-label="Piecework, overview">
        <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
          <rect x="1" y="2" width="14" height="3" rx="1" />
          <rect x="1" y="6.5" width="9" height="3" rx="1" />
          <rect x="1" y="11" width="5" height="3" rx="1" />
        </svg>
        <span>Piecework</span>
      </a>
      <label class="queue">
        <span>Queue</span>
        <select
          value={queue}
          onChange={({ currentTarget }) => {
            location.hash = linkTo(current, '', {}, currentTarget.value);
          }}
        >
          {queues.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <nav aria-label="Pages">
        {PAGES.filter(([name]) => name !== 'beside' || beside).map(([name, words]) => (
          <a key={name} href={linkTo(name)} aria-current={name === current ? 'page' : undefined}>
            {words}
          </a>
        ))}
      </nav>
      <div class="who">
        <span class={`sign ${connection.value.replace(' ', '-')}`} role="status">
          {SIGNS[connection.value]}
        </span>
        <span class="visitor" title={whoIs(visitor, control)}>
          <bdi>{visitor === 'insecure' ? 'no sign-in' : visitor}</bdi>
          {control ? '' : ', reads only'}
        </span>
        <button type="button" class="plain" onClick={switchTheme}>
          {theme.value === 'dark' ? 'Light' : 'Dark'}
        </button>
      </div>
    </header>
  );
}

function whoIs(visitor: string, control: boolean): string {
  const may = control ? 'You may change things' : 'You may only read';
  return visitor === 'insecure'
    ? `${may}, and so may everybody on this machine: insecure is set`
    : may;
}

function Page() {
  switch (route.value.page) {
    case 'requests':
      return <Requests />;
    case 'request':
      return <OneRequest />;
    case 'workers':
      return <Workers />;
    case 'errors':
      return <Errors />;
    case 'beside':
      return <Beside />;
    default:
      return <Overview />;
  }
}

shell.subscribe((known) => {
  const [first] = known?.queues ?? [];
  if (first !== undefined && route.value.queue === '')
    location.replace(linkTo('overview', '', {}, first));
});
void loadShell();
showHidden();
render(<App />, document.getElementById('app') as HTMLElement);
