import { Piecework } from 'piecework';
import { type DashboardOptions, DEFAULT_QUEUES } from './shape/options.js';

const KNOWN = [
  ...['redis', 'authorize', 'insecure', 'allowControl', 'queues', 'beside', 'showPayloads', 'mask'],
  // Of Fastify's `register`.
  ...['prefix', 'logLevel', 'logSerializers'],
];
const BESIDE = ['retryQueues', 'schedulers', 'idQueues'] as const;
/** Most queues of one dashboard: each may have a connection. */
const MOST_QUEUES = 50;

/** @throws TypeError that names the option · InvalidOptionError of `redis`, or of the name or shards of a queue */
export function checkedOptions(given: DashboardOptions): DashboardOptions {
  const { authorize, insecure = false, queues, mask, beside = {} } = given;
  const unknown = Object.keys(given).find((name) => !KNOWN.includes(name));
  if (unknown !== undefined) throw new TypeError(`dashboard: there is no option ${unknown}`);
  if (!given.redis) throw new TypeError('dashboard: the option redis is missing');
  if (!authorize && insecure !== true)
    throw new TypeError('dashboard: give authorize, or insecure: true on your own machine');
  if (authorize !== undefined && typeof authorize !== 'function')
    throw new TypeError('dashboard: authorize must be a function');
  if (mask !== undefined && typeof mask !== 'function')
    throw new TypeError('dashboard: mask must be a function');
  if (queues && (queues.length === 0 || queues.length > MOST_QUEUES))
    throw new TypeError(`dashboard: queues must be a list of 1 to ${MOST_QUEUES}`);
  if (queues?.some((queue) => typeof queue !== 'object' || typeof queue?.name !== 'string'))
    throw new TypeError("dashboard: queues must name each queue like { name: 'req' }");
  // Refuses what it could not read later: a name, shards, and what `redis` is. It connects to nothing.
  for (const { name, shards = 1 } of queues ?? DEFAULT_QUEUES)
    void new Piecework({ redis: given.redis, queue: name, shards }).close();
  const names = [...(queues ?? []).map(({ name }) => name)];
  if (new Set(names).size < names.length)
    throw new TypeError('dashboard: a queue is named twice in queues');
  const others = Object.keys(beside).find((kind) => !BESIDE.some((known) => known === kind));
  if (others !== undefined) throw new TypeError(`dashboard: beside has no ${others}`);
  if (BESIDE.flatMap((kind) => beside[kind] ?? []).length > MOST_QUEUES)
    throw new TypeError(`dashboard: beside names more than ${MOST_QUEUES} queues`);
  return given;
}
