import {
  ConnectionError,
  type Created,
  createField,
  encodeLimit,
  encodePolicy,
  encodeToleratedFailures,
  isElsewhere,
  isOpen,
  type Patiently,
  type PipelineReply,
  type QueueCommands,
  reopenIfClosed,
  TIMES,
  withdrawGeneration,
} from '@piecework/protocol';
import { confirmed, type Site } from '../seal/seal-request.js';
import { LastUsed } from './last-used.js';
import type { CheckedOptions } from './options.js';
import { type TurnHead, turnOf } from './turn.js';

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
  readonly allIn?: PipelineReply | 'announced';
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

/** Whether the request has to be tended at a time of its own, which `create` answers. */
const isTimed = ({ deadlineMs, delayMs, runAt }: CheckedOptions): boolean =>
  deadlineMs !== undefined || delayMs !== undefined || runAt !== undefined;

/** What was made of options that several submissions share. */
const heads = new WeakMap<CheckedOptions, LastUsed<TurnHead>>();

function headOf(
  { keys }: QueueCommands,
  digest: string,
  options: CheckedOptions,
  notify: string,
): TurnHead {
  let made = heads.get(options);
  if (!made) {
    made = new LastUsed();
    heads.set(options, made);
  }
  return made.get(`${keys.queue} ${notify}`, () => newHead(keys.queue, digest, options, notify));
}

function newHead(queue: string, digest: string, options: CheckedOptions, notify: string): TurnHead {
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
    turnOf(queue).submit(head, { id, owner, call, payloads }),
  );
  return generation === 0 ? undefined : { generation, created: true, allIn: 'announced' };
}

/**
 * Creates the request, or finds the one of its id. `inOneTrip`: with the items of `small`, and seals it; in one call
 * where one server has both sides.
 */
export async function createRequest(
  site: Site,
  creation: Creation,
  inOneTrip: boolean,
): Promise<CreatedRequest> {
  const { small, options } = creation;
  const { id } = site.request.keys;
  if (small && inOneTrip) {
    // With its items not sent, it would be open until its lease has ended.
    options.signal?.throwIfAborted();
    const whole = site.connection.isOneServer
      ? await submitWhole(site, small, { ...creation, id })
      : undefined;
    if (whole) return whole;
  }
  return createByParts(site, creation, inOneTrip);
}

/**
 * Opens an intent on the queue side, then creates the request; starts over when the intent was given up in between.
 * `inOneTrip`: the items of `small` go with the creation and the seal, in one round trip.
 */
async function createByParts(
  { connection, queue, request: commands, patience }: Site,
  { owner, digest, options, small, isNewId, call, notify = '' }: Creation,
  inOneTrip: boolean,
): Promise<CreatedRequest> {
  const { id } = commands.keys;
  const leaseMs = options.producerLeaseMs;
  const fields = Object.entries(fieldsOf(queue.keys.queue, digest, options)).flat();
  if (small) fields.push(...createField(owner));
  if (call !== undefined) fields.push('createdBy', call);
  if (notify !== '') fields.push('notify', notify);
  const createdBy = async () => (await commands.fields('createdBy'))['createdBy'];
  // cure: of several calls that submit the same, one creates the request
  const isMade = async () => call === undefined || (await patience.call(createdBy)) === call;
  // No other process knows a new id.
  const isOurs = async () => (call === undefined ? isNewId === true : isMade());
  // Another queue may have opened the id in the same millisecond.
  const isOther = async () => isElsewhere(queue, (await commands.fields('queue'))['queue']);
  const atOnce = small && inOneTrip && !isTimed(options);
  const patiently: Patiently = (call) => patience.call(call);
  let above = 0;
  let opened = false;
  for (let voids = 0; voids < VOID_TRIES; ) {
    const { epoch } = connection;
    // cure: intent before create
    const generation = await patience.call(() => queue.intent(id, above));
    if (atOnce && !options.signal?.aborted) {
      const whole = { generation, owner, leaseMs, fields, payloads: small };
      // Which call made the request is read in the same round trip; if that read fails, it is repeated below.
      let reading: Promise<string | undefined> | undefined;
      const allIn = await patience.call(() => {
        const sending = commands.submitInPipeline(whole);
        reading = call === undefined ? undefined : createdBy().catch(() => undefined);
        return sending;
      });
      if (allIn) {
        const created = (await reading) === call || (await confirmed(id, isMade));
        return { generation, allIn, created };
      }
      // Something prevented it; the separate calls below find out what.
    }
    const created = await patience.call(() =>
      commands.create(generation, owner, leaseMs, fields, epoch),
    );
    // A new connection may lead to a server that lost the intent, or the creation.
    if (created.verdict === 'broke') continue;
    // cure: the agenda entry of a create
    if (created.verdict === 'created') {
      const { tendAt } = created;
      // The intent has scheduled the first tend; an earlier one has to be scheduled here.
      if (tendAt > 0 && tendAt < generation + TIMES.intentGraceMs)
        await reopenIfClosed(
          queue,
          commands,
          generation,
          () => queue.scheduleTend(id, generation, tendAt),
          patiently,
        );
      if (connection.epoch !== epoch && !(await isOpen(queue, commands, generation, patiently)))
        continue;
      return { generation, created: await isMade() };
    }
    // Refused, or given up before it was used, as when this process was frozen in between.
    const found = created.verdict === 'exists' ? created : undefined;
    if (created.verdict === 'void') {
      above = created.above;
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
    if (found) return { generation, found, created: await isOurs() };
  }
  throw new ConnectionError(`request ${id}: its intent was given up ${VOID_TRIES} times`);
}
