import type { Attributes } from '@opentelemetry/api';

/*
 * Names of attributes: of the semantic conventions for messaging spans where these have one, else with our own prefix.
 * The conventions are not stable yet. Written out here, because the package that defines them has no stable entry for
 * those of messaging.
 */

export const attribute = {
  system: 'messaging.system',
  queue: 'messaging.destination.name',
  operation: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  /** Id of the worker. */
  client: 'messaging.client.id',
  /** Id of the request: all spans of a request have it. */
  conversation: 'messaging.message.conversation_id',
  message: 'messaging.message.id',
  batch: 'messaging.batch.message_count',
  errorType: 'error.type',
  task: 'piecework.task',
  generation: 'piecework.generation',
  created: 'piecework.request.created',
  status: 'piecework.request.status',
  total: 'piecework.request.total',
  failed: 'piecework.request.failed',
  cancelled: 'piecework.request.cancelled',
  index: 'piecework.index',
  attempt: 'piecework.attempt',
  crashes: 'piecework.crashes',
  outcome: 'piecework.outcome',
} as const;

/** What every span has. `type`: where the operation is one that the conventions know. */
export const common = (
  queue: string,
  operation: string,
  type?: 'send' | 'process',
): Attributes => ({
  [attribute.system]: 'piecework',
  [attribute.queue]: queue,
  [attribute.operation]: operation,
  ...(type === undefined ? {} : { [attribute.operationType]: type }),
});
