import { createHash } from 'node:crypto';
import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { type Identified, isLoopback } from './access.js';
import { type Credentials, signIn } from './credentials.js';
import { Refused } from './refused.js';

/** Wrong credentials that one address may send in a minute. An IPv6 address counts with its /64, this machine as one. */
const GUESSES = 30;
const MINUTE_MS = 60_000;
/** Credentials whose answer is remembered: they do not change while the process runs. */
const MOST_KNOWN = 1_000;

/** Whoever sits there has all addresses of 127.0.0.0/8. */
const THIS_MACHINE = 'this machine';

const CHALLENGE = { 'www-authenticate': 'Basic realm="Piecework", charset="UTF-8"' };

/**
 * Asks for name and password by the browser's own means (HTTP Basic), which the stream of events has, too; or for the
 * token as a Bearer token. Each credential is checked once, and counts once if it is wrong. One check runs at a time, so
 * that no guess is checked before the ones before it have counted; bcrypt has one thread anyway.
 * @returns `authorize` of the plugin
 */
export async function signInWith(
  app: FastifyInstance,
  credentials: Credentials,
): Promise<(request: FastifyRequest) => Promise<Identified>> {
  await app.register(rateLimit, { global: false });
  const limits = { max: GUESSES, timeWindow: MINUTE_MS };
  const ofAddress = app.createRateLimit(limits);
  const ofThisMachine = app.createRateLimit({ ...limits, keyGenerator: () => THIS_MACHINE });
  const guesses: typeof ofAddress = (request, options) =>
    (isLoopback(request.ip) ? ofThisMachine : ofAddress)(request, options);
  // Apart, or guesses from many addresses would push out who has signed in.
  const right = new LRUCache<string, { readonly name: string | undefined }>({ max: MOST_KNOWN });
  const wrong = new LRUCache<string, { readonly name: string | undefined }>({ max: MOST_KNOWN });
  const known = (key: string) => right.get(key) ?? wrong.get(key);
  const inTurn = pLimit(1);

  const check = async (request: FastifyRequest, authorization: string, key: string) => {
    const before = known(key);
    if (before) return before;
    const counted = await guesses(request, { increment: false });
    if (!counted.isAllowed && counted.remaining === 0)
      throw new Refused(429, 'Too many wrong passwords from this address; wait a minute.', {
        'retry-after': String(counted.ttlInSeconds),
      });
    const { name, password } = given(authorization) ?? {};
    const answer = {
      name: password === undefined ? undefined : await signIn(credentials, name ?? '', password),
    };
    if (answer.name === undefined) await guesses(request);
    (answer.name === undefined ? wrong : right).set(key, answer);
    return answer;
  };

  return async (request) => {
    const { authorization } = request.headers;
    // A browser asks without a name first: that is no guess.
    if (authorization === undefined) throw new Refused(401, 'Sign in first.', CHALLENGE);
    const key = createHash('sha256').update(authorization).digest('hex');
    const { name } = known(key) ?? (await inTurn(() => check(request, authorization, key)));
    if (name === undefined) throw new Refused(401, 'Wrong name or password.', CHALLENGE);
    // Whoever knows the token may type any name: such visitors are told apart by their address.
    return {
      name,
      ...('token' in credentials
        ? { sharesLimitsAs: isLoopback(request.ip) ? THIS_MACHINE : request.ip }
        : {}),
    };
  };
}

/** What `Authorization: Basic …` or `Bearer …` holds. undefined: it is neither. */
function given(authorization: string): { name: string; password: string } | undefined {
  const [, scheme = '', text = ''] =
    /^(Basic|Bearer) ([\w.~+/-]{1,4000}=*)$/i.exec(authorization) ?? [];
  if (scheme === '') return undefined;
  if (scheme.toLowerCase() === 'bearer') return { name: '', password: text };
  const [, name, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(text, 'base64').toString()) ?? [];
  return name === undefined || password === undefined ? undefined : { name, password };
}
