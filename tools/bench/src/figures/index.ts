import { cap } from './cap.js';
import { cost } from './cost.js';
import { discard } from './discard.js';
import { fairness } from './fairness.js';
import type { Figure } from './figure.js';
import { growth } from './growth.js';
import { idleGap } from './idle-gap.js';
import { latency } from './latency.js';
import { load } from './load.js';
import { notice } from './notice.js';
import { queueShare } from './queue-share.js';
import { recovery } from './recovery.js';
import { rest } from './rest.js';
import { smallRequest } from './small-request.js';
import { straggler } from './straggler.js';

/** In the order of the report. */
export const figures = {
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
  'small-request': smallRequest,
  load,
  fairness,
  recovery,
} satisfies Record<string, Figure>;

export type FigureName = keyof typeof figures;
export const figureNames = Object.keys(figures) as FigureName[];
