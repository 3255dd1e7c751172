import { nextTurn } from '../../common/waiting.js';
import { HISTORY_MAX, TIMES } from '../../contract/defaults.js';
import { ServerError } from '../../contract/errors.js';
import type { QueueKeys, RequestKeys } from '../../contract/keys.js';
import { listKeys, type Placed, placeOf } from '../../contract/lanes.js';
import type { Connection } from '../../redis/connection.js';
import { type Arguments, type Reply, run } from '../../scripts/run-script.js';
import { type Entry, SEPARATOR } from './outcome-codec.js';

/*
 * Calls on compact requests (lua/lib/compact.lua) that come in one turn of the event loop go to the server together.
 * A request that is not compact any more answers nothing here: the caller makes the call for any form.
 */

type Ok = Extract<Reply<'enter'>, { readonly verdict: 'ok' }>;

/** What `enter` answers when it grants permits. */
export interface Entered extends Placed<Omit<Ok, 'entries' | 'live'>> {
  /** Whether somebody follows the results. */
  readonly live: boolean;
  /** The first sub-requests for the granted permits. */
  readonly entries: readonly Entry[];
}

type Enters = Arguments<'enter-compact'>;
type Settles = Arguments<'settle-compact'>;

/** A request to enter. `common`: what it has in common with those of the same call. */
export interface Entering {
  readonly request: string;
  readonly common: Omit<Enters, 'entering'>;
  readonly entering: Enters['entering'][number];
}

/** The queue of a request, with the lists that were in use when it was cleared last. */
export interface QueueToClear {
  readonly keys: QueueKeys;
  readonly named: string;
}

/** What has become of a request. 'complete': `finish` has to be called. */
export type CompactEnd = 'complete' | 'finished';

/** A request to settle. */
export interface Settling {
  readonly queue: QueueToClear;
  readonly worker: string;
  readonly keys: Pick<RequestKeys, 'request' | 'results'>;
  readonly settling: Settles['settling'][number];
}

/** Where the payloads begin in the reply about one request. */
const HEAD = 4;

/** The most requests of one call: the worker begins with these while the server carries the next one out. */
const REQUESTS = 25;

interface Waiting<Asked, Answer> {
  readonly asked: Asked;
  readonly resolve: (answer: Answer | undefined) => void;
  readonly reject: (error: unknown) => void;
}

type Some<Of> = readonly [Of, ...Of[]];

/** Gathers what is asked for in one turn of the event loop. `kindOf`: what goes together is of one kind. */
class Turn<Asked, Answer> {
  readonly #kindOf: (asked: Asked) => string;
  readonly #send: (some: Some<Asked>) => Promise<readonly (Answer | undefined)[]>;
  #waiting = new Map<string, Waiting<Asked, Answer>[]>();

  constructor(
    kindOf: (asked: Asked) => string,
    send: (some: Some<Asked>) => Promise<readonly (Answer | undefined)[]>,
  ) {
    this.#kindOf = kindOf;
    this.#send = send;
  }

  ask(asked: Asked): Promise<Answer | undefined> {
    // A tick that a promise asks for runs behind all promises of the turn.
    if (this.#waiting.size === 0) queueMicrotask(() => process.nextTick(() => this.#sendAll()));
    const kind = this.#kindOf(asked);
    const alike = this.#waiting.get(kind) ?? [];
    this.#waiting.set(kind, alike);
    return new Promise((resolve, reject) => {
      alike.push({ asked, resolve, reject });
    });
  }

  /**
   * Sends each call in a turn of its own. A server that gets two calls together answers neither before it has carried
   * out both; then client and server would take turns, and each would wait for the other.
   */
  async #sendAll(): Promise<void> {
    const all = this.#waiting;
    this.#waiting = new Map();
    let sent = 0;
    for (const alike of all.values())
      for (let from = 0; from < alike.length; from += REQUESTS) {
        if (sent > 0) await nextTurn();
        sent += 1;
        void this.#sendSome(alike.slice(from, from + REQUESTS));
      }
  }

  async #sendSome(some: readonly Waiting<Asked, Answer>[]): Promise<void> {
    try {
      const answers = await this.#send(some.map(({ asked }) => asked) as unknown as Some<Asked>);
      for (const [i, { resolve }] of some.entries()) resolve(answers[i]);
    } catch (error) {
      // cure: a call that is refused for one request refuses no other
      const isRefused = error instanceof ServerError && !error.retryable;
      for (const { resolve, reject } of some) isRefused ? resolve(undefined) : reject(error);
    }
  }
}

/** The calls of all who share a connection. */
export class CompactCalls {
  readonly #connection: Connection;
  readonly #enters: Turn<Entering, Entered>;
  readonly #settles: Turn<Settling, CompactEnd>;
  /** Whether the last request that was entered here was compact, so that the next one probably is. */
  areUsual = false;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#enters = new Turn(
      ({ common: { worker, leaseMs, tasks, most, ahead, quick } }) =>
        `${worker} ${leaseMs} ${most} ${ahead} ${quick} ${tasks}`,
      (some) => this.#enterSome(some),
    );
    this.#settles = new Turn(
      ({ worker, queue }) => `${worker} ${queue.keys.queue}`,
      (some) => this.#settleSome(some),
    );
  }

  /** Enters a request of which this worker has nothing. Returns undefined when the call for any form has to be made. */
  async enter(asked: Entering): Promise<Entered | undefined> {
    const entered = await this.#enters.ask(asked);
    this.areUsual = entered !== undefined;
    return entered;
  }

  /** Completes a request, and finishes it with others. Returns undefined when the calls for any form have to be made. */
  settle(asked: Settling): Promise<CompactEnd | undefined> {
    return this.#settles.ask(asked);
  }

  async #enterSome(some: Some<Entering>): Promise<(Entered | undefined)[]> {
    const requests = some.map(({ request }) => request);
    const entering = some.map((one) => one.entering);
    const args = { ...some[0].common, entering };
    const { entered, ends } = await run(
      this.#connection.client,
      'enter-compact',
      { requests },
      args,
    );
    return some.map((one, i) => (entered[i] ? replyOf(one, entered[i], ends) : undefined));
  }

  async #settleSome(some: Some<Settling>): Promise<(CompactEnd | undefined)[]> {
    const [{ queue, worker }] = some;
    const { keys } = queue;
    // Redis sends the notice of the end when the script has ended: for a single request the caller would wait for more.
    const finishes = some.length > 1;
    const named = finishes ? queue.named : '';
    const others = some.flatMap((one) => [one.keys.request, one.keys.results]);
    for (const list of listKeys(keys, named)) others.push(list);
    const { left, complete } = await run(
      this.#connection.client,
      'settle-compact',
      { ...keys, others },
      {
        worker,
        finishes: Number(finishes),
        historyMs: TIMES.historyMs,
        historyMax: HISTORY_MAX,
        named,
        settling: some.map(({ settling }) => settling),
      },
    );
    const end = finishes && left === '' ? 'finished' : 'complete';
    return complete.map((is) => (is === 1 ? end : undefined));
  }
}

/** In each reply the priority, the task, the policy and the payloads follow the numbers. */
function replyOf({ common, entering }: Entering, text: string, ends: number): Entered {
  const parts = text.split(SEPARATOR);
  const [permits = 0, epoch = 0, attempts = 0] = (parts[0] as string).split(' ').map(Number);
  const { generation, op } = entering;
  const { priority, due } = placeOf(parts[1] as string);
  const entries: Entry[] = [];
  for (let i = HEAD; i < parts.length; i += 1) {
    const index = i - HEAD;
    const entry = `${generation}-${index}`;
    const payload = parts[i] as string;
    entries.push({ entry, index, payload, tries: 0, crashes: 0, suspect: false });
  }
  // By name: V8 takes about 1 µs for each new property behind a spread (docs/decisions/0048-client-cpu.md).
  return {
    verdict: 'ok',
    permits,
    mint: 0,
    epoch,
    dueNow: 0,
    attempts,
    ends,
    ready: 0,
    live: false,
    quick: common.quick,
    compact: 1,
    priority,
    due,
    task: parts[2] as string,
    grantNo: String(op),
    policy: parts[3] as string,
    entries,
  };
}

const callsOf = new WeakMap<Connection, CompactCalls>();

/** The calls on compact requests of all who share a connection. */
export function compactCalls(connection: Connection): CompactCalls {
  let calls = callsOf.get(connection);
  if (!calls) {
    calls = new CompactCalls(connection);
    callsOf.set(connection, calls);
  }
  return calls;
}
