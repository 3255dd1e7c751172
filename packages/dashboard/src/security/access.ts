import { isIPv6 } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { DashboardOptions, Visitor } from '../shape/options.js';
import { Refused } from './refused.js';

/** Longer addresses are refused. */
const LONGEST_URL = 4_096;
/** What stands before and after the colon of a name that the visitor cannot have chosen by DNS. */
const OWN_HOSTS = ['localhost', '127.0.0.1', '[::1]'];

const visitors = new WeakMap<object, Visitor>();

/** Who sent this request. Only within routes, that is after the check. */
export function visitorOf(request: FastifyRequest): Visitor {
  return visitors.get(request.raw) ?? { name: 'nobody', control: false };
}

/** Lets in whoever `authorize` knows; with `insecure`, whoever sits at this machine. Before anything else. */
export function addAccess(instance: FastifyInstance, options: DashboardOptions): void {
  const { authorize } = options;
  instance.addHook('onRequest', async (request) => {
    if (request.url.length > LONGEST_URL) throw new Refused(414, 'The address is too long.');
    if (!authorize) checkOwnMachine(request);
    const visitor = authorize ? await authorize(request) : { name: 'insecure' };
    if (!visitor) throw new Refused(401, 'Sign in first.');
    visitors.set(request.raw, visitor);
  });
}

/**
 * Without `authorize`, requests come from this machine and name it. A page of another site that made its name lead
 * here (DNS rebinding) would name itself.
 */
function checkOwnMachine(request: FastifyRequest): void {
  const from = request.socket.remoteAddress ?? '';
  if (!isLoopback(from)) throw new Refused(403, 'Only this machine may look: --insecure is set.');
  const host = (request.headers.host ?? '').replace(/:\d+$/, '').toLowerCase();
  if (!OWN_HOSTS.includes(host))
    throw new Refused(403, 'Use localhost in the address: --insecure is set.');
}

export function isLoopback(address: string): boolean {
  if (address === 'localhost') return true;
  const plain = address.replace(/^::ffff:/i, '');
  return isIPv6(plain) ? plain === '::1' : /^127(\.\d{1,3}){3}$/.test(plain);
}

/**
 * For what changes something: a page of another site cannot send it. Browsers name the origin of each POST, and send
 * JSON to another site only when that allows it.
 */
export function checkSameOrigin(request: FastifyRequest): void {
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/json') throw new Refused(415, 'Send JSON.');
  const { origin } = request.headers;
  const site = request.headers['sec-fetch-site'];
  const isOwn = origin !== undefined && hostOf(origin) === request.host.toLowerCase();
  if (!isOwn || (site !== undefined && site !== 'same-origin'))
    throw new Refused(403, 'Only the page of the dashboard may change something.');
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host.toLowerCase();
  } catch {
    return undefined;
  }
}
