import { SORTS, STATES } from '@piecework/views';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod/mini';
import { Refused } from '../security/refused.js';

/*
 * What requests may contain. Checked here, and not by schemas of Fastify: an application may have replaced its compiler.
 */

const name = z.string().check(z.minLength(1), z.maxLength(256));
const text = (most: number) => z._default(z.string().check(z.maxLength(most)), '');
const number = (from: number, to: number, byDefault: number) =>
  z._default(z.coerce.number().check(z.int(), z.minimum(from), z.maximum(to)), byDefault);

export const queueParams = z.object({ queue: name });
export const requestParams = z.object({ queue: name, id: name });
export const resultsParams = z.object({ queue: name, id: name, cursor: text(200) });
export const failureParams = z.object({
  queue: name,
  id: name,
  index: z.coerce.number().check(z.int(), z.minimum(0), z.maximum(Number.MAX_SAFE_INTEGER)),
});

const YEAR_MS = 31_536_000_000;
export const searchParams = z.object({
  queue: name,
  text: text(200),
  state: z._default(z.enum(STATES), 'any'),
  priorityFrom: number(0, 99, 0),
  priorityTo: number(0, 99, 99),
  olderThanMs: number(0, YEAR_MS, 0),
  youngerThanMs: number(0, YEAR_MS, 0),
  sort: z._default(z.enum(SORTS), 'created'),
  descending: z._default(
    z.pipe(
      z.enum(['true', 'false']),
      z.transform((said) => said === 'true'),
    ),
    true,
  ),
  page: number(1, 1_000_000, 1),
  size: number(1, 100, 50),
});

export const VIEWS = ['overview', 'requests', 'request', 'workers', 'errors', 'beside'] as const;
export const viewParams = z.object({ view: z.enum(VIEWS) });

const id = { queue: name, id: name };
const limit = z.union([z.null(), z.number().check(z.int(), z.minimum(1), z.maximum(1_000_000))]);
/** Bodies of changes, by action. */
export const BODIES = {
  pause: z.object(id),
  resume: z.object(id),
  cancel: z.object(id),
  update: z
    .object({
      ...id,
      limit: z.optional(limit),
      priority: z.optional(z.number().check(z.int(), z.minimum(0), z.maximum(99))),
    })
    .check(z.refine(({ limit, priority }) => limit !== undefined || priority !== undefined)),
  redrive: z.object({
    ...id,
    name: z.optional(z.string().check(z.minLength(1), z.maxLength(128))),
    indexes: z.optional(
      z.array(z.number().check(z.int(), z.minimum(0))).check(z.minLength(1), z.maxLength(1_000)),
    ),
  }),
  /** `typed`: the id again, as somebody typed it. */
  drop: z.object({ ...id, typed: name }).check(z.refine((body) => body.id === body.typed)),
  'pause-queue': z.object({
    queue: name,
    forMs: z._default(z.number().check(z.int(), z.minimum(0), z.maximum(YEAR_MS)), 0),
  }),
  'resume-queue': z.object({ queue: name }),
};
export type Action = keyof typeof BODIES;

/** @throws Refused 400 */
export function parse<Schema extends z.ZodMiniType>(
  schema: Schema,
  value: unknown,
): z.infer<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = (issue?.path ?? []).map(String).join('.').slice(0, 50);
  throw new Refused(400, `This value is not allowed${where ? `: ${where}` : ''}.`);
}

export const queryOf = (request: FastifyRequest) => ({ ...(request.query as object) });
