import { isIP, isIPv6 } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { DashboardOptions, Visitor } from '../shape/options.js';
import { Refused } from './refused.js';

/** Longer addresses are refused. */
const LONGEST_URL = 4_096;
/** What names this machine, and nobody can have chosen by DNS. */
const OWN_HOSTS = ['localhost', '127.0.0.1', '[::1]'];
/** A proxy sets at least one of these, or passes on the name of the site, or speaks HTTP/1.0 (nginx as it is installed). */
const OF_PROXIES = /^(x-forwarded-.*|x-real-ip|x-client-ip|forwarded|via)$/;

/** A visitor of `serveDashboard`. */
export interface Identified extends Visitor {
  /** Visitors with the same one share the limits of one viewer. @default the name */
  readonly sharesLimitsAs?: string | undefined;
}

const visitors = new WeakMap<object, Identified>();

/** Who sent this request. Only within routes, that is after the check. */
export function visitorOf(request: FastifyRequest): Identified {
  return visitors.get(request.raw) ?? { name: 'nobody', control: false };
}

/** Whose limits this request counts for. */
export function viewerOf(request: FastifyRequest): string {
  const { name, sharesLimitsAs = name } = visitorOf(request);
  return sharesLimitsAs;
}

/** Lets in whoever `authorize` knows; with `insecure`, whoever sits at this machine. Before anything else. */
export function addAccess(instance: FastifyInstance, options: DashboardOptions): void {
  const { authorize } = options;
  instance.addHook('onRequest', async (request) => {
    if (request.url.length > LONGEST_URL) throw new Refused(414, 'The address is too long.');
    if (!authorize) checkOwnMachine(request);
    const visitor = authorize ? await authorize(request) : { name: 'insecure' };
    if (!visitor) throw new Refused(401, 'Sign in first.');
    checkVisitor(visitor);
    visitors.set(request.raw, visitor);
  });
}

/** Each change needs somebody who made it. @throws TypeError, which is answered by 500: an error of the application */
function checkVisitor(visitor: unknown): void {
  const { name, control } = visitor as Record<string, unknown>;
  if (
    typeof name === 'string' &&
    name.trim() !== '' &&
    ['undefined', 'boolean'].includes(typeof control)
  )
    return;
  throw new TypeError(
    'dashboard: authorize must return { name, control }, name a text and control a boolean or absent; or undefined',
  );
}

/**
 * Without `authorize`, requests come from this machine and name it. A page of another site that made its name lead
 * here (DNS rebinding) would name itself.
 */
function checkOwnMachine(request: FastifyRequest): void {
  const from = request.socket.remoteAddress ?? '';
  if (!isLoopback(from)) throw new Refused(403, 'Only this machine may look: --insecure is set.');
  const { headers, httpVersion } = request.raw;
  if (!OWN_HOSTS.includes(withoutPort(headers.host ?? '')))
    throw new Refused(403, 'Use localhost in the address: --insecure is set.');
  if (httpVersion === '1.0' || Object.keys(headers).some((name) => OF_PROXIES.test(name)))
    throw new Refused(
      403,
      'A proxy sent this, and --insecure is set: give a token or users instead.',
    );
}

/**
 * Otherwise a stranger makes a name of his own lead here (DNS rebinding), and his page asks in the visitor's browser.
 * Nobody chooses where an IP address leads.
 * @param hosts names of the operator
 * @throws Refused 421
 */
export function checkHost(request: FastifyRequest, hosts: readonly string[]): void {
  const host = withoutPort(request.host);
  if (isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0 || host === 'localhost') return;
  if (hosts.some((name) => name.toLowerCase() === host)) return;
  throw new Refused(
    421,
    'The dashboard is not known by the name in the address; --hosts names it.',
  );
}

const withoutPort = (host: string): string => host.replace(/:\d+$/, '').toLowerCase();

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
