import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import helmet from 'helmet';

const nonces = new WeakMap<object, string>();

/** The nonce of the answer to this request: scripts and styles without it do not run. */
export function nonceOf({ raw }: Pick<FastifyRequest, 'raw'>): string {
  const known = nonces.get(raw);
  if (known) return known;
  const made = randomBytes(18).toString('base64');
  nonces.set(raw, made);
  return made;
}

/** Headers of every answer of the plugin. */
export function addHeaders(instance: FastifyInstance): void {
  instance.addHook('onRequest', (request, reply, done) => {
    setHeaders(request.raw, reply.raw);
    done();
  });
}

/**
 * By `helmet` itself instead of @fastify/helmet, which decorates the instance: an application that uses it could not
 * register the dashboard.
 */
export function setHeaders(request: IncomingMessage, response: ServerResponse): void {
  const nonce = `'nonce-${nonceOf({ raw: request })}'`;
  const policy = helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: [nonce],
        styleSrc: [nonce],
        imgSrc: ["'self'", 'data:'],
        connectSrc: ["'self'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
        requireTrustedTypesFor: ["'script'"],
        trustedTypes: ["'none'"],
      },
    },
    // Whoever serves the dashboard by TLS decides this for the whole host.
    strictTransportSecurity: false,
    referrerPolicy: { policy: 'no-referrer' },
    frameguard: { action: 'deny' },
  });
  response.setHeader('cache-control', 'no-store');
  policy(request, response, (error) => {
    if (error) throw error;
  });
}
