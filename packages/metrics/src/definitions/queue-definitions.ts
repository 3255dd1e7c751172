import type { Definition } from './definition.js';

const QUEUE = ['queue'] as const;

/** What is read of a queue, by `piecework exporter` and by the dashboard. */
export const queueDefinitions = {
  up: {
    name: 'piecework_queue_up',
    type: 'gauge',
    help: 'Whether the queue could be read (1) or not (0); if not, its other metrics are left out.',
    labels: QUEUE,
  },
  open: {
    name: 'piecework_queue_open_requests',
    type: 'gauge',
    help: 'Requests that have not ended.',
    labels: QUEUE,
  },
  parked: {
    name: 'piecework_queue_parked_requests',
    type: 'gauge',
    help: 'Open requests that wait for a worker that serves their task.',
    labels: QUEUE,
  },
  ended: {
    name: 'piecework_queue_requests_ended_total',
    type: 'counter',
    help: 'Requests that ended, by outcome.',
    labels: ['queue', 'outcome'],
    note: 'Starts again from 0 after the queue was unused for a week.',
  },
  ready: {
    name: 'piecework_queue_ready_sub_requests',
    type: 'gauge',
    help: 'Sub-requests that are ready and do not run yet, by band of ten priorities.',
    labels: ['queue', 'priorities'],
  },
  running: {
    name: 'piecework_queue_running_sub_requests',
    type: 'gauge',
    help: 'Sub-requests that run.',
    labels: QUEUE,
  },
  delayed: {
    name: 'piecework_queue_delayed_sub_requests',
    type: 'gauge',
    help: 'Sub-requests that wait for a time (the delay of a retry, or of their request), or whose request is paused.',
    labels: QUEUE,
  },
  backlog: {
    name: 'piecework_queue_backlog_sub_requests',
    type: 'gauge',
    help: 'Unsettled sub-requests of open requests: ready, running and delayed ones.',
    labels: QUEUE,
  },
  oldest: {
    name: 'piecework_queue_oldest_waiting_seconds',
    type: 'gauge',
    help: 'Age of the oldest request with ready sub-requests of which none runs; 0: there is no such request.',
    labels: QUEUE,
    note: 'Paused requests, and those that wait for a time, are not counted.',
  },
  paused: {
    name: 'piecework_queue_paused',
    type: 'gauge',
    help: 'Whether the queue is paused (1) or not (0).',
    labels: QUEUE,
  },
  workers: {
    name: 'piecework_queue_workers',
    type: 'gauge',
    help: 'Registered workers: alive, draining, unready (they take no work), or silent (they may have ended).',
    labels: ['queue', 'state'],
  },
  slots: {
    name: 'piecework_queue_slots',
    type: 'gauge',
    help: 'Slots of the workers that are alive or draining; of unready ones those in use.',
    labels: QUEUE,
  },
  stuck: {
    name: 'piecework_queue_stuck_slots',
    type: 'gauge',
    help: 'Slots occupied by handlers that continue although they were asked to stop.',
    labels: QUEUE,
  },
  handlerTime: {
    name: 'piecework_queue_handler_seconds',
    type: 'gauge',
    help: 'Recent mean time of a handler; while it is not known, 1, or the age of the oldest running handler if that is more.',
    labels: QUEUE,
  },
  workSlots: {
    name: 'piecework_queue_work_slots',
    type: 'gauge',
    help: 'How many slots the waiting and running work could occupy at once.',
    labels: QUEUE,
  },
  workSeconds: {
    name: 'piecework_queue_work_seconds',
    type: 'gauge',
    help: 'How many seconds one slot would take for the waiting and running work.',
    labels: QUEUE,
  },
  neededSlots: {
    name: 'piecework_queue_needed_slots',
    type: 'gauge',
    help: 'How many slots the fleet needs to do the work in the target time; 0: none. The number to scale by.',
    labels: QUEUE,
    note: 'The smaller of `piecework_queue_work_slots`, and `piecework_queue_work_seconds` divided by the target time and rounded up.',
  },
  readAge: {
    name: 'piecework_queue_read_age_seconds',
    type: 'gauge',
    help: 'Age of the oldest figure of the queue.',
    labels: QUEUE,
    note: 'One read covers at most 2,000 open requests. With more, the figures of the others are older.',
  },
} as const satisfies Record<string, Definition>;
