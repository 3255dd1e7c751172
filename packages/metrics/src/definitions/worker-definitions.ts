import type { Definition } from './definition.js';

/** Handlers may take a millisecond or an hour. */
const RUN = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600];
const WAIT = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400];
const SETTLE = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 20];

const OF_TASK = ['queue', 'task'] as const;

/** What workers measure. */
export const workerDefinitions = {
  handlerTime: {
    name: 'piecework_handler_duration_seconds',
    type: 'histogram',
    help: 'How long handlers ran, for each attempt that succeeded or failed.',
    labels: OF_TASK,
    buckets: RUN,
  },
  waitingTime: {
    name: 'piecework_sub_request_waiting_seconds',
    type: 'histogram',
    help: 'How long sub-requests waited from the creation of their request to the start of their first attempt.',
    labels: OF_TASK,
    buckets: WAIT,
    note: 'Redis keeps no time for each item. So an item that was added late to an open request seems to have waited since the request was opened, and a delay (`delayMs`, `runAt`) counts as waiting.',
  },
  requestTime: {
    name: 'piecework_request_duration_seconds',
    type: 'histogram',
    help: 'How long requests took from their creation to their completion, by outcome.',
    labels: [...OF_TASK, 'outcome'],
    buckets: WAIT,
    note: 'Counted by the worker whose report completed the request. If a cancel or a deadline ended a request while nothing of it ran, it is only in `piecework_queue_requests_ended_total`.',
  },
  settleTime: {
    name: 'piecework_settle_duration_seconds',
    type: 'histogram',
    help: 'How long Redis took to answer a report of outcomes, including repeats of the call.',
    labels: ['queue'],
    buckets: SETTLE,
    note: 'One report has the outcomes of many sub-requests. The time for which they wait for each other (`settleDelayMs`) is not included.',
  },
  attempts: {
    name: 'piecework_attempts_total',
    type: 'counter',
    help: 'Attempts by how they ended: succeeded, failed (none follows), retried (another follows), returned (not counted).',
    labels: [...OF_TASK, 'outcome'],
  },
  failures: {
    name: 'piecework_failures_total',
    type: 'counter',
    help: 'Attempts that failed, by the class of the error that the handler threw.',
    labels: [...OF_TASK, 'error'],
    note: 'The first 30 classes of a process have names. All others, and names that cannot be those of a class, are `other`.',
  },
  usage: {
    name: 'piecework_usage_total',
    type: 'counter',
    help: 'What handlers passed to context.usage, by its name, for attempts of any outcome.',
    labels: [...OF_TASK, 'name'],
    note: 'The first 20 names of a process are shown. The sum of all others is `other`.',
  },
  slots: {
    name: 'piecework_worker_slots',
    type: 'gauge',
    help: 'Slots: how many sub-requests may run at once.',
    labels: ['queue'],
  },
  running: {
    name: 'piecework_worker_running',
    type: 'gauge',
    help: 'Handlers that run now.',
    labels: ['queue'],
  },
  workers: {
    name: 'piecework_workers',
    type: 'gauge',
    help: 'Workers by whether they take work (ready) or not.',
    labels: ['queue', 'ready'],
    note: 'A worker is ready when `/ready` of the health endpoint says so.',
  },
  leasesLost: {
    name: 'piecework_leases_lost_total',
    type: 'counter',
    help: 'Leases on requests that a worker lost while handlers ran; other workers may run the same sub-requests.',
    labels: ['queue'],
  },
  reclaimed: {
    name: 'piecework_sub_requests_reclaimed_total',
    type: 'counter',
    help: 'Sub-requests taken back from workers that had ended.',
    labels: ['queue'],
  },
  stalls: {
    name: 'piecework_stalls_total',
    type: 'counter',
    help: 'Calls to Redis that were not answered for five seconds; the worker repeats them until they are answered.',
    labels: ['queue'],
  },
  errors: {
    name: 'piecework_worker_errors_total',
    type: 'counter',
    help: 'Errors of the worker itself, as its error event reports them; handlers that throw are not among them.',
    labels: ['queue'],
  },
  reconnects: {
    name: 'piecework_reconnects_total',
    type: 'counter',
    help: 'Connections to Redis that were lost and are back, and hash slots that were moving and have arrived.',
    labels: ['queue'],
  },
} as const satisfies Record<string, Definition>;

/** The process of workers; added up over the processes of a fleet. Left out in a registry of your own. */
export const processDefinitions = {
  cpu: {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    help: 'CPU time of the worker processes, user and system.',
    labels: [],
  },
  memory: {
    name: 'process_resident_memory_bytes',
    type: 'gauge',
    help: 'Resident memory of the worker processes.',
    labels: [],
  },
} as const satisfies Record<string, Definition>;
