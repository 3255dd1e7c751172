import type {
  ControlEvent,
  Entry,
  FaultEvent,
  ObserverEvent,
  ProducerEvent,
  ServerEvent,
  TakerEvent,
  WaiterEvent,
  WorkerEvent,
} from '../contract/history.js';
import type { Act } from '../contract/plan.js';
import type { Findings } from './findings.js';
import { type Interval, type Process, Processes } from './processes.js';
import { JournalError } from './read-journals.js';
import { type Redrive, type Request, Requests } from './requests.js';
import { Runs } from './runs.js';
import { TakenKeys } from './taken.js';
import { Upheavals } from './upheavals.js';

/** A waiter must have waited for this long before the completion; otherwise its answer is not counted as a notice. */
const THERE_BEFORE_MS = 100;

/**
 * Sorts the entries of the journals by what they are about. The entries of one process come in order, and one process
 * comes after the other: so nothing here may depend on entries of another process.
 */
export class Evidence {
  readonly processes = new Processes();
  readonly requests = new Requests();
  readonly runs = new Runs();
  readonly taken = new TakenKeys();
  readonly upheavals = new Upheavals();
  readonly noticeMs: number[] = [];
  readonly withoutNoticeMs: number[] = [];
  readonly acts: Partial<Record<Act, number>> = {};
  readonly waiting = new Map<string, { ms: number; after: number }>();
  firstMs = Number.POSITIVE_INFINITY;
  lastToldMs = Number.NaN;
  drainMs = Number.NaN;
  drainedMs = Number.NaN;
  keysLeft: readonly string[] | undefined;
  told = 0;
  read = 0;
  readonly #findings: Findings;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  take({ ns, process: name, event }: Entry): void {
    const ms = Number(ns) / 1e6;
    const process = this.processes.named(name);
    process.lastMs = ms;
    this.firstMs = Math.min(this.firstMs, ms);
    if (isFault(event)) this.processes.fault(event, ms);
    else if (isServer(event)) this.upheavals.take(event, ms);
    else if (isTaker(event)) this.taken.take(event, name, ms);
    else if (isWorker(event)) this.#worker(event, process, ms);
    else if (isWaiter(event)) this.#waiter(event, process, ms);
    else if (isProducer(event)) this.#producer(event, name, ms);
    else if (isControl(event)) this.#control(event, name, ms);
    else if (isObserver(event)) this.#observer(event, ms);
    else throw new JournalError(`unknown entry: ${JSON.stringify(event)}`);
  }

  #producer(event: ProducerEvent, process: string, ms: number): void {
    const request = this.requests.named(event.request);
    if ('failed' in event) return;
    if ('does' in event) {
      request.announced.set(`${process} ${event.does}`, ms);
      if (event.does !== 'drop') request.producers.push({ process, ms });
      if (event.does === 'open') request.leaseMs = event.leaseMs ?? Number.POSITIVE_INFINITY;
      if (event.does === 'open') this.#open(request, event, ms);
      else if (event.does === 'append') request.attempt(event.from, event.to);
      else if (event.does === 'drop') request.dropMs = Math.min(request.dropMs, ms);
      return;
    }
    const announcedMs = request.announced.get(`${process} ${event.did}`) ?? ms;
    const sinceNs = 'sinceNs' in event ? event.sinceNs : undefined;
    const fromMs = sinceNs === undefined ? announcedMs : Number(sinceNs) / 1e6;
    if (event.did !== 'drop') request.acks.push({ fromMs, toMs: ms });
    if (event.did === 'append') request.acknowledge(event.from, event.to, ms);
    else if (event.did === 'drop') request.dropped = true;
    else this.#sealed(request, event, { fromMs, toMs: ms });
  }

  #open(
    request: Request,
    { limit, deadlineMs }: { limit: number; deadlineMs?: number },
    ms: number,
  ): void {
    request.limit = limit;
    request.lastOpenMs = Math.max(request.lastOpenMs, ms);
    if (deadlineMs !== undefined)
      request.deadlineMs = Math.min(request.deadlineMs, ms + deadlineMs);
    if (!(request.openedMs <= ms)) request.openedMs = ms;
  }

  #sealed(
    request: Request,
    { generation, total }: { generation: number; total: number },
    at: Interval,
  ) {
    request.seals.push({ generation, total, ...at });
    request.acknowledgedMs = Math.min(request.acknowledgedMs, at.toMs);
  }

  /** A step that was taken twice, as its process was killed, counts from the first time on. */
  #control(event: ControlEvent, process: string, ms: number): void {
    const request = this.requests.named(event.request);
    if ('failed' in event) return;
    const { step, act } = event;
    const asked = 'does' in event;
    if (!asked) this.acts[act] = (this.acts[act] ?? 0) + 1;
    const earliest = (before: number) => Math.min(before, ms);
    if (['limit', 'pause', 'resume'].includes(act)) {
      const change = request.change(step);
      if (asked) change.limit = event.limit;
      if (asked) change.askedMs = earliest(change.askedMs);
      else change.doneMs = earliest(change.doneMs);
    } else if (act === 'cancel' && asked) {
      request.cancelMs = earliest(request.cancelMs);
    } else if (act === 'cancel') {
      request.cancelledMs = earliest(request.cancelledMs);
    } else if (act === 'redrive' && asked) {
      request.redriveMs = earliest(request.redriveMs);
      request.redrives.push({ process, fromMs: ms, toMs: Number.POSITIVE_INFINITY });
    } else if (act === 'redrive') {
      const isOpen = (one: Redrive) => one.process === process && one.toMs > ms;
      for (const one of request.redrives.filter(isOpen)) one.toMs = ms;
    } else if (act === 'drop' && asked) {
      request.droppedEarlyMs = earliest(request.droppedEarlyMs);
      request.dropMs = earliest(request.dropMs);
    } else if (act === 'drop') {
      request.goneMs = earliest(request.goneMs);
    }
  }

  #worker(event: WorkerEvent, process: Process, ms: number): void {
    if ('does' in event) {
      const { request: id, index, attempt, item } = event;
      this.runs.begin(process.number, this.requests.named(id).number, index, attempt, ms);
      if (item === index) return;
      this.#findings.add('unexpected', `${id}: run of index ${index} was given item ${item}`);
    } else if (event.did === 'start') {
      process.leaseMs = event.leaseMs;
    } else if (event.did === 'stand still') {
      process.stoodStill.push({ fromMs: ms - event.forMs, toMs: ms });
    } else if (event.did === 'abort') {
      this.runs.told(process.number, this.requests.named(event.request).number, event.index, ms);
    } else if (event.did === 'settle') {
      const endedMs = Number(event.endedNs) / 1e6;
      this.requests.named(event.request).settles.push({ process: process.number, endedMs, ms });
    } else {
      const { request: id, index, ended } = event;
      const { number } = this.requests.named(id);
      if (this.runs.end(process.number, number, index, ms, ended)) return;
      this.#findings.add(
        'unexpected',
        `${id}: ${process.name} ended index ${index}, and never began`,
      );
    }
  }

  #waiter(event: WaiterEvent, process: Process, ms: number): void {
    const request = this.requests.named(event.request);
    const waiting = `${process.name} ${request.id}`;
    const began = this.waiting.get(waiting) ?? { ms, after: 0 };
    const whose = { process: process.name, ms, beganMs: began.ms, after: began.after };
    if ('failed' in event) {
      const isLost = event.code === 'LOST';
      const beganMs = began.ms;
      if (isLost || event.code === 'NOT_FOUND') request.notThere.push({ ms, beganMs, isLost });
      if (event.code === 'EXPIRED') request.expiredMs.push(ms);
    } else if ('does' in event) {
      this.waiting.set(waiting, { ms, after: event.after ?? 0 });
      if (event.after !== undefined) request.laterGenerations.add(event.after);
    } else if (event.did === 'await') {
      const { generation, status, counts, latencyMs, heardNs } = event;
      const heardMs = heardNs === undefined ? ms : Number(heardNs) / 1e6;
      request.told.push({ ...whose, ms: heardMs, sinceMs: heardMs, generation, status, counts });
      request.toldMs = Math.min(request.toldMs, heardMs);
      this.told += 1;
      if (!(this.lastToldMs >= ms)) this.lastToldMs = ms;
      // A waiter that came after the completion got an answer, not a notice.
      const waitedMs = heardMs - began.ms;
      if (waitedMs < latencyMs + THERE_BEFORE_MS) return;
      (event.notices ? this.noticeMs : this.withoutNoticeMs).push(latencyMs);
    } else {
      const { generation, status, counts } = event.outcome;
      const heard = request.told.findLast((one) => one.process === process.name);
      const sinceMs = heard?.ms ?? began.ms;
      request.told.push({ ...whose, sinceMs, generation, status, counts });
      const reading = request.reading(process.name, event.generation);
      reading.beganMs = Math.min(reading.beganMs, began.ms);
      reading.endedMs = ms;
      reading.counts = counts;
      for (const { index, status, item } of event.results) {
        reading.index.push(index);
        reading.item.push(status === 'failed' ? Number.NaN : (item ?? -1));
      }
      this.read += event.results.length;
      reading.over = event.over;
    }
  }

  #observer(event: ObserverEvent, ms: number): void {
    if ('does' in event) this.drainMs = ms;
    else if (event.did === 'drain') this.drainedMs = ms;
    else if (event.did === 'look for keys') this.keysLeft = event.left;
    else if (event.did === 'inspect') {
      const { generation, counts } = event;
      this.requests.named(event.request).inspected.push({ generation, counts, ms });
    }
  }
}

type Event = Entry['event'];

const wordOf = (event: Event): string =>
  'does' in event ? event.does : 'did' in event ? event.did : event.failed;

const isFault = (event: Event): event is FaultEvent => wordOf(event) === 'fault';
const isServer = (event: Event): event is ServerEvent =>
  ['lose writes', 'step clock'].includes(wordOf(event));
const isTaker = (event: Event): event is TakerEvent => 'queue' in event;
const isWorker = (event: Event): event is WorkerEvent =>
  ['start', 'run', 'abort', 'settle', 'stand still'].includes(wordOf(event));
const isWaiter = (event: Event): event is WaiterEvent => ['await', 'read'].includes(wordOf(event));
const isProducer = (event: Event): event is ProducerEvent =>
  ['open', 'append', 'seal', 'drop'].includes(wordOf(event));
const isControl = (event: Event): event is ControlEvent => wordOf(event) === 'control';
const isObserver = (event: Event): event is ObserverEvent =>
  ['sample', 'inspect', 'look for keys', 'drain'].includes(wordOf(event));
