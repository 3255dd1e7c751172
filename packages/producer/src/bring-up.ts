import {
  type AllIn,
  type Connection,
  ConnectionError,
  type Created,
  createField,
  encodeLimit,
  encodePolicy,
  encodeToleratedFailures,
  firstToken,
  giveUp,
  isOpen,
  type Patience,
  type Patiently,
  type QueueCommands,
  type RequestCommands,
  TIMES,
  tellOpen,
} from '@piecework/protocol';
import type { CheckedOptions } from './options.js';
import { confirmed } from './seal-in.js';

/** How often a submission starts over when its intent was given up before it was used. */
const VOID_TRIES = 5;

/** A request that was there already. */
export type Found = Extract<Created, { verdict: 'exists' }>;

/** A request of this name, just created by us or found there. */
export interface BroughtUp {
  readonly generation: number;
  /** Whether it was made by this call. */
  readonly created: boolean;
  /** What was found instead; undefined when the request is open and ours. */
  readonly found?: Found;
  /** Set when it is all in and sealed already. */
  readonly allIn?: AllIn;
}

/** What a request is, field by field, as `create` keeps it. */
export function fieldsOf(
  queue: string,
  digest: string,
  options: CheckedOptions,
): Record<string, string | number> {
  const { metadata, deadlineMs, delayMs, runAt, expedite } = options;
  return {
    queue,
    priority: options.priority,
    limit: encodeLimit(options.limit),
    task: options.task ?? '',
    attempts: options.attempts,
    policy: encodePolicy(options),
    maxCrashes: options.maxCrashes,
    window: options.window,
    results: options.results,
    retentionMs: options.retentionMs,
    toleratedFailures: encodeToleratedFailures(options.toleratedFailures),
    onExceeded: options.onExceeded,
    digest,
    onProducerLost: options.onProducerLost,
    metadata: metadata === undefined ? '' : JSON.stringify(metadata),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(runAt === undefined ? {} : { heldUntil: Number(runAt) }),
    ...(expedite ? { expedite: 1 } : {}),
  };
}

/** Whether it is to be looked at at a time of its own, which `create` answers. */
const isTimed = ({ deadlineMs, delayMs, runAt }: CheckedOptions): boolean =>
  deadlineMs !== undefined || delayMs !== undefined || runAt !== undefined;

/**
 * Whether nothing is known of an id, as far as the queue side can tell. A wrong answer does no harm: a
 * first token that comes for nothing is a surplus one. But who submits the same again and again should
 * not fill the list with those while no worker is there.
 */
const isUnknown = async (queue: QueueCommands, id: string): Promise<boolean> => {
  const { open, endedAt } = await queue.whereabouts(id).catch(() => ({ open: 0, endedAt: 0 }));
  return open === undefined && endedAt === undefined;
};

/**
 * Intent, then create; again from the start when the intent was given up in between. `small`: all its
 * items, of a submission that numbers them so. `atOnce`: they go with the create, and the seal behind;
 * and the first token of a new request too, if all is `oneServer`. `isNewId`: nobody else knows the id.
 * `call`: the request keeps which call made it, where several may ask for the same at once.
 */
export async function bringUp(
  connection: Connection,
  queue: QueueCommands,
  commands: RequestCommands,
  parts: {
    owner: string;
    digest: string;
    options: CheckedOptions;
    patience: Patience;
    small?: readonly string[] | undefined;
    atOnce?: boolean;
    isNewId?: boolean;
    call?: string | undefined;
    oneServer?: boolean;
  },
): Promise<BroughtUp> {
  const { owner, digest, options, patience, small, isNewId, oneServer, call } = parts;
  const { id } = commands.keys;
  const leaseMs = options.producerLeaseMs;
  const fields = Object.entries(fieldsOf(queue.keys.queue, digest, options)).flat();
  if (small) fields.push(...createField(owner));
  if (call !== undefined) fields.push('createdBy', call);
  const createdBy = async () => (await commands.fields('createdBy'))['createdBy'];
  const isMade = async () => call === undefined || (await patience.call(createdBy)) === call;
  const atOnce = small && parts.atOnce && !isTimed(options);
  // Asked before the intent opens it.
  const tokenToo = atOnce && oneServer && !options.expedite && (isNewId || isUnknown(queue, id));
  const patiently: Patiently = (call) => patience.call(call);
  let above = 0;
  let opened = false;
  for (let voids = 0; voids < VOID_TRIES; ) {
    const { epoch } = connection;
    const generation = await patience.call(() => queue.intent(id, above));
    if (atOnce && !options.signal?.aborted) {
      const whole = { generation, owner, leaseMs, fields, payloads: small };
      const { priority } = options;
      const first = (await tokenToo) ? firstToken(queue, { id, generation, priority }) : undefined;
      // Which call made it is read behind it, in the same round trip. What that does not tell is asked for.
      let reading: Promise<string | undefined> | undefined;
      const allIn = await patience.call(() => {
        const sending = commands.createAllIn(whole, first);
        reading = call === undefined ? undefined : createdBy().catch(() => undefined);
        return sending;
      });
      if (allIn) {
        const created = (await reading) === call || (await confirmed(id, isMade));
        return { generation, allIn, created };
      }
      // Something stood in the way, which the long way tells apart.
    }
    const created = await patience.call(() =>
      commands.create(generation, owner, leaseMs, fields, epoch),
    );
    // Behind a new connection may be a server that lost the intent, or the create.
    if (created.verdict === 'broke') continue;
    if (created.verdict === 'created') {
      const { look } = created;
      // The first look comes by itself; one that has to be sooner is noted, else it would be late.
      if (look > 0 && look < generation + TIMES.intentGraceMs)
        await tellOpen(
          queue,
          commands,
          generation,
          () => queue.note(id, generation, look),
          patiently,
        );
      if (connection.epoch !== epoch && !(await isOpen(queue, commands, generation, patiently)))
        continue;
      return { generation, created: await isMade() };
    }
    // Refused, or given up before it was used, as when this process stood still in between.
    const found = created.verdict === 'exists' ? created : undefined;
    if (created.verdict === 'void') {
      above = created.above;
      voids += 1;
    }
    if (found?.generation !== generation) {
      await giveUp(queue, commands, generation, patiently);
      // The queue side had lost a life that goes on. Now it is open there, and found under its own generation.
      if (found && found.status !== 'complete' && !opened) {
        opened = true;
        continue;
      }
    }
    if (found) return { generation, found, created: call !== undefined && (await isMade()) };
  }
  throw new ConnectionError(`request ${id}: its intent was given up ${VOID_TRIES} times`);
}
