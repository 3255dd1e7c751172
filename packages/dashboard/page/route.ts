import { computed, signal } from '@preact/signals';

/** Where the page is: `#/<queue>/<page>[/<id>][?<parameters>]`. */
export interface Route {
  readonly queue: string;
  readonly page: string;
  readonly id: string;
  readonly params: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener('hashchange', () => {
  hash.value = location.hash;
});

export const route = computed<Route>(() => parse(hash.value));

function parse(text: string): Route {
  const [path = '', query = ''] = text.replace(/^#\/?/, '').split('?');
  const [queue = '', page = '', id = ''] = path.split('/').map(decoded);
  return { queue, page: page || 'overview', id, params: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a page of this queue. */
export function linkTo(
  page: string,
  id = '',
  params: Readonly<Record<string, string>> = {},
  queue = route.value.queue,
): string {
  const path = [queue, page, ...(id ? [id] : [])].map(encodeURIComponent).join('/');
  const query = new URLSearchParams(params).toString();
  return `#/${path}${query ? `?${query}` : ''}`;
}

/** Changes parameters of this page, without an entry in the history of the browser. */
export function changeParams(changes: Readonly<Record<string, string>>): void {
  const { page, id, params } = route.value;
  const all = { ...Object.fromEntries(params), ...changes };
  const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
  history.replaceState(null, '', linkTo(page, id, kept));
  hash.value = location.hash;
}
