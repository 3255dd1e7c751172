import { HANDLER_MS, MASTERS, type Setting, USUAL, WORKERS } from './assumptions.js';
import type { Costs } from './costs.js';
import { type Effort, type Simulated, simulate } from './simulate.js';

/** How few requests may be live before single masters are left idle. */
export const FEW_REQUESTS = [1, 3, 10, 30, 100, 300, 1_000] as const;

/** Every number of masters and workers and every handler time, with nobody waiting and with many. */
export function usualSettings(): Setting[] {
  return [false, true].flatMap((contended) =>
    HANDLER_MS.flatMap((handlerMs) =>
      WORKERS.flatMap((workers) =>
        MASTERS.map((masters) => ({ ...USUAL, contended, handlerMs, workers, masters })),
      ),
    ),
  );
}

/** From one big request to many: 1,000 workers whose handlers take 5 ms. */
export function fewRequests(): Setting[] {
  return FEW_REQUESTS.flatMap((requests) =>
    MASTERS.map((masters) => ({ ...USUAL, requests, masters, workers: 1_000, handlerMs: 5 })),
  );
}

export function simulateAll(
  settings: readonly Setting[],
  costs: Costs,
  effort: Effort,
): Simulated[] {
  return settings.map((setting) => simulate(setting, costs, effort));
}
