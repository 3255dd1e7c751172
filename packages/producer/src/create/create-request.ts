import {
  ConnectionError,
  type Created,
  encodeLimit,
  encodePolicy,
  encodeToleratedFailures,
  isElsewhere,
  isOpen,
  type Patiently,
  type QueueCommands,
  reopenIfClosed,
  TIMES,
  withdrawGeneration,
} from '@piecework/protocol';
import type { Site } from '../seal/seal-request.js';
import { LastUsed } from './last-used.js';
import type { CheckedOptions } from './options.js';
import type { Announcement } from './small.js';
import { type SharedHead, submitsOf } from './submits.js';

/** How often a submission starts over when its intent was given up before it was used. */
const VOID_TRIES = 5;

/** A request that was there already. */
export type Found = Extract<Created, { verdict: 'exists' }>;

/** A request of this id: created by this call, or found. */
export interface CreatedRequest {
  readonly generation: number;
  /** Whether this call made it. */
  readonly created: boolean;
  /** The request that was found instead; undefined when the request is open and this producer's. */
  readonly found?: Found;
  /** Set when all items are in and the request is sealed already; 'announced': the queue side has it open. */
  readonly allIn?: Announcement | 'announced';
}

/** How a request is to be created. */
export interface Creation {
  /** Name of the submission. */
  readonly owner: string;
  readonly digest: string;
  readonly options: CheckedOptions;
  /** All its items, encoded, when they are known and fit into one call. */
  readonly small?: readonly string[] | undefined;
  /** Whether no other process knows the id. */
  readonly isNewId?: boolean;
  /** Names this call: of several that ask for the same, the request records which one made it. */
  readonly call?: string | undefined;
  /** A channel of this process, where the end of the request is published too; '': none. */
  readonly notify?: string;
}

/** The fields of a request, as `create` stores them. First those that workers read: Redis finds these sooner. */
export function fieldsOf(
  queue: string,
  digest: string,
  options: CheckedOptions,
): Record<string, string | number> {
  const { metadata, deadlineMs, delayMs, runAt, expedite } = options;
  return {
    priority: options.priority,
    limit: encodeLimit(options.limit),
    task: options.task ?? '',
    attempts: options.attempts,
    policy: encodePolicy(options),
    maxCrashes: options.maxCrashes,
    results: options.results,
    retentionMs: options.retentionMs,
    queue,
    window: options.window,
    toleratedFailures: encodeToleratedFailures(options.toleratedFailures),
    onExceeded: options.onExceeded,
    digest,
    onProducerLost: options.onProducerLost,
    metadata: metadata === undefined ? '' : JSON.stringify(metadata),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(runAt === undefined ? {} : { heldUntil: Number(runAt), runAt: Number(runAt) }),
    ...(expedite ? { expedite: 1 } : {}),
  };
}

/** What was made of options that several submissions share. */
const heads = new WeakMap<CheckedOptions, LastUsed<SharedHead>>();

function headOf(
  { keys }: QueueCommands,
  digest: string,
  options: CheckedOptions,
  notify: string,
): SharedHead {
  let made = heads.get(options);
  if (!made) {
    made = new LastUsed();
    heads.set(options, made);
  }
  return made.get(`${keys.queue} ${notify}`, () => newHead(keys.queue, digest, options, notify));
}

function newHead(
  queue: string,
  digest: string,
  options: CheckedOptions,
  notify: string,
): SharedHead {
  const fields = Object.entries(fieldsOf(queue, digest, options)).flat();
  if (notify !== '') fields.push('notify', notify);
  const [leaseMs, text] = [options.producerLeaseMs, JSON.stringify(fields.map(String))];
  return {
    ...{ priority: options.priority, isExpedited: options.expedite, leaseMs, options: text },
    text: `${leaseMs} ${text}`,
  };
}

/**
 * Submits a whole request in one call, where one server has both sides.
 * @returns undefined when something of its id is there: the separate calls find out what
 */
async function submitWhole(
  { queue, patience }: Site,
  payloads: readonly string[],
  { id, owner, digest, options, call = '', notify = '' }: Creation & { readonly id: string },
): Promise<CreatedRequest | undefined> {
  const head = headOf(queue, digest, options, notify);
  const generation = await patience.call(() =>
    submitsOf(queue).submit(head, { id, owner, call, payloads }),
  );
  return generation === 0 ? undefined : { generation, created: true, allIn: 'announced' };
}

/**
 * Creates the request, or finds the one of its id. If its items are known and few, it is created with them and sealed; in
 * one call where one server has both sides.
 */
export async function createRequest(site: Site, creation: Creation): Promise<CreatedRequest> {
  const { small, options } = creation;
  if (small) options.signal?.throwIfAborted();
  const { id } = site.request.keys;
  const whole =
    small && site.connection.isOneServer
      ? await submitWhole(site, small, { ...creation, id })
      : undefined;
  return whole ?? createBehindIntent(site, creation);
}

/**
 * Opens an intent on the queue side, then creates the request; starts over when the intent was given up in between.
 */
async function createBehindIntent(
  { connection, queue, request: commands, patience }: Site,
  { owner, digest, options, small, isNewId, call, notify = '' }: Creation,
): Promise<CreatedRequest> {
  const { id } = commands.keys;
  const head = headOf(queue, digest, options, notify);
  const creation = { owner, call, leaseMs: head.leaseMs, options: head.options, items: small };
  // cure: of several calls that submit the same, one creates the request
  const isOurs = (createdBy: string) => createdBy === call;
  // Another queue may have opened the id in the same millisecond.
  const isOther = async () => isElsewhere(queue, (await commands.fields('queue'))['queue']);
  const patiently: Patiently = (call) => patience.call(call);
  let above = 0;
  let opened = false;
  for (let voids = 0; voids < VOID_TRIES; ) {
    const { epoch } = connection;
    // cure: intent before create
    const generation = await patience.call(() => queue.intent(id, above));
    // Nothing but the id is open now, and the agenda closes it.
    if (small) options.signal?.throwIfAborted();
    const made = await patience.call(() => commands.create({ ...creation, generation }, epoch));
    // A new connection may lead to a server that lost the intent, or the creation.
    if (made.verdict === 'broke') continue;
    // The intent has scheduled the first tend; an earlier one has to be scheduled as well.
    const isEarly =
      'tendAt' in made && made.tendAt > 0 && made.tendAt < generation + TIMES.intentGraceMs;
    if (made.verdict === 'sealed') {
      const { verdict: _, tendAt, ...minted } = made;
      const allIn = { ...minted, tendAt: isEarly ? tendAt : undefined };
      return { generation, created: true, allIn };
    }
    // cure: the agenda entry of a create
    if (made.verdict === 'created') {
      const { tendAt, createdBy } = made;
      const schedule = () => queue.scheduleTend(id, generation, tendAt);
      if (isEarly) await reopenIfClosed(queue, commands, generation, schedule, patiently);
      if (connection.epoch !== epoch && !(await isOpen(queue, commands, generation, patiently)))
        continue;
      return { generation, created: call === undefined || isOurs(createdBy) };
    }
    // Refused, or given up before it was used, as when this process was frozen in between.
    const found = made.verdict === 'exists' ? made : undefined;
    if (made.verdict === 'void') {
      above = made.above;
      voids += 1;
    }
    const isEqual = found?.generation === generation;
    // cure: an id of another queue is not left open here
    if (!isEqual || (await patience.call(isOther)))
      await withdrawGeneration(queue, commands, generation, patiently);
    // The queue side had lost a generation that still runs. Now it is open there, and found by the next try.
    if (found && !isEqual && found.status !== 'complete' && !opened) {
      opened = true;
      continue;
    }
    // No other process knows a new id.
    if (found)
      return {
        generation,
        found,
        created: call === undefined ? isNewId === true : isOurs(found.createdBy),
      };
  }
  throw new ConnectionError(`request ${id}: its intent was given up ${VOID_TRIES} times`);
}
