import type { QueueSource } from '@piecework/views';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { z } from 'zod/mini';
import type { Sources } from '../data/sources.js';
import { checkSameOrigin, visitorOf } from '../security/access.js';
import { answerOf, Refused } from '../security/refused.js';
import type { DashboardOptions } from '../shape/options.js';
import { type Action, BODIES, parse, queueParams } from './params.js';
import { queueNamed } from './reads.js';

const MOST_BYTES = 32_768;

type BodyOf<Name extends Action> = z.infer<(typeof BODIES)[Name]>;
type Act<Name extends Action> = (source: QueueSource, body: BodyOf<Name>) => Promise<unknown>;

const ACTS: { readonly [Name in Action]: Act<Name> } = {
  pause: ({ pw }, { id }) => pw.admin.pause(id),
  resume: ({ pw }, { id }) => pw.admin.resume(id),
  cancel: ({ pw }, { id }) => pw.admin.cancel(id),
  update: ({ pw }, { id, limit, priority }) =>
    pw.admin.update(id, {
      ...(limit === undefined ? {} : { limit }),
      ...(priority === undefined ? {} : { priority }),
    }),
  redrive: ({ pw }, { id, name, indexes }) =>
    pw.admin.redrive(id, {
      ...(name === undefined ? {} : { name }),
      ...(indexes === undefined ? {} : { indexes }),
    }),
  drop: ({ pw }, { id }) => pw.admin.drop(id),
  'pause-queue': ({ pw }, { forMs }) => pw.admin.pauseQueue({ forMs }),
  'resume-queue': ({ pw }) => pw.admin.resumeQueue(),
};

/** `POST control/<action>`: changes, each with a line in the log that names who did it. */
export function addControl(
  instance: FastifyInstance,
  sources: Sources,
  { allowControl = false }: DashboardOptions,
): void {
  const options = { bodyLimit: MOST_BYTES };
  for (const action of Object.keys(ACTS) as Action[])
    instance.post(`/api/control/${action}`, options, async (request) => {
      checkSameOrigin(request);
      const { control = true } = visitorOf(request);
      if (!allowControl) throw new Refused(403, 'This dashboard may only be read.');
      if (!control) throw new Refused(403, 'You may only read.');
      const body = parse(BODIES[action], request.body);
      const source = queueNamed(sources, body.queue);
      // Each action has the body of its own schema.
      const act = ACTS[action] as Act<Action>;
      return audited(request, action, body, async () => {
        const done = await act(source, body as never);
        source.changed();
        return { done: done ?? true };
      });
    });

  // Writes nothing; but it costs Redis more than a read of a page.
  instance.post('/api/check', options, async (request) => {
    checkSameOrigin(request);
    const { queue } = parse(queueParams, request.body);
    return { begun: queueNamed(sources, queue).check() };
  });
}

/** One line for each change: who, what, and how it went. */
async function audited<T>(
  request: FastifyRequest,
  action: Action,
  change: object,
  act: () => Promise<T>,
): Promise<T> {
  const line = { audit: true, who: visitorOf(request).name, from: request.ip, action, change };
  try {
    const done = await act();
    request.log.info({ ...line, outcome: 'done' }, 'dashboard: change');
    return done;
  } catch (error) {
    const { code } = answerOf(error);
    request.log.warn({ ...line, outcome: code }, 'dashboard: change failed');
    throw error;
  }
}
