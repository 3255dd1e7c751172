import type { Figure } from '../figure/figure.js';
import { cap } from './cap.js';
import { cost } from './cost.js';
import { delayedTasks } from './delayed-tasks.js';
import { discard } from './discard.js';
import { fairness } from './fairness.js';
import { fleet } from './fleet.js';
import { growth } from './growth.js';
import { idleGap } from './idle-gap.js';
import { latency } from './latency.js';
import { load } from './load.js';
import { network } from './network.js';
import { notice } from './notice.js';
import { openRequests } from './open-requests.js';
import { payload } from './payload.js';
import { queueShare } from './queue-share.js';
import { recovery } from './recovery.js';
import { requestMemory } from './request-memory.js';
import { rest } from './rest.js';
import { smallRequest } from './small-request.js';
import { start } from './start.js';
import { straggler } from './straggler.js';

/** In the order of the report. */
export const figures = {
  fleet,
  network,
  'small-request': smallRequest,
  'delayed-tasks': delayedTasks,
  'open-requests': openRequests,
  payload,
  start,
  discard,
  latency,
  notice,
  'idle-gap': idleGap,
  straggler,
  growth,
  cap,
  'queue-share': queueShare,
  cost,
  rest,
  'request-memory': requestMemory,
  load,
  fairness,
  recovery,
} satisfies Record<string, Figure>;

export type FigureName = keyof typeof figures;
export const figureNames = Object.keys(figures) as FigureName[];
