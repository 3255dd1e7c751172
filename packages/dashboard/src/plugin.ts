import type { FastifyInstance } from 'fastify';
import { checkedOptions } from './check-options.js';
import { Rounds } from './data/rounds.js';
import { Sources } from './data/sources.js';
import { addAssets } from './http/assets.js';
import { addControl } from './http/control.js';
import { addEvents } from './http/events.js';
import { addMetrics } from './http/metrics.js';
import { addReads } from './http/reads.js';
import { addAccess } from './security/access.js';
import { addHeaders } from './security/headers.js';
import { answerOf, bodyOf, Refused } from './security/refused.js';
import type { DashboardOptions } from './shape/options.js';

/**
 * The dashboard as a plugin of Fastify: `app.register(dashboard, { prefix: '/piecework', redis, authorize })`. It has
 * its own scope: hooks and headers concern its own routes only. Closing the application closes its connections.
 * @throws TypeError for options that are not allowed, such as neither `authorize` nor `insecure`
 */
export async function dashboard(instance: FastifyInstance, given: DashboardOptions): Promise<void> {
  const options = checkedOptions(given);
  const sources = new Sources(options, (error, what) =>
    instance.log.warn({ err: error, what }, 'dashboard: could not read'),
  );
  const rounds = new Rounds(() => sources.rest());
  // Its answers are errors of its own, not those of the application.
  instance.setErrorHandler((error, request, reply) => {
    const { status, isNews, ...refused } = answerOf(error);
    if (error instanceof Refused) reply.headers(error.headers);
    const line = {
      ip: request.ip,
      method: request.method,
      path: request.url.slice(0, 200),
      status,
    };
    if (isNews) request.log.error({ ...line, err: error }, 'dashboard: failed');
    else if (status !== 404)
      request.log.warn({ ...line, why: refused.message }, 'dashboard: refused');
    void reply.code(status).send(bodyOf(refused));
  });
  instance.setNotFoundHandler((request, reply) => {
    const path = request.url.slice(0, 200);
    request.log.warn(
      { ip: request.ip, method: request.method, path, status: 404 },
      'dashboard: refused',
    );
    void reply.code(404).send(bodyOf(answerOf({ statusCode: 404 })));
  });
  addHeaders(instance);
  addAccess(instance, options);
  addAssets(instance);
  addReads(instance, sources, options);
  addMetrics(instance, sources);
  addEvents(instance, sources, rounds);
  addControl(instance, sources, options);
  instance.addHook('onClose', async () => {
    rounds.close();
    await sources.close();
  });
}
