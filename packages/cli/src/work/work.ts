import type { WorkValues } from './check-work.js';
import { loadHandlers } from './load-handlers.js';
import type { Work } from './programs.js';

/** @param onDiscarded called once, when `--exec-output none` has discarded output; it is waited for */
export async function openWork(
  values: WorkValues,
  onDiscarded: () => Promise<void> = async () => {},
): Promise<Work> {
  const { handler } = values;
  if (handler !== undefined)
    return { handlers: await loadHandlers(handler), close: async () => {} };
  const { openPrograms } = await import('./programs.js');
  return openPrograms(values, onDiscarded);
}
