import type { OpenRequest } from '@piecework/producer';
import { AbortError, pause, SealedError } from '@piecework/protocol';
import type { RequestHandle } from 'piecework';
import type { Input } from '../input/input.js';
import { say } from '../terminal/print.js';
import { LossWarning } from '../work/loss-warning.js';
import type { RunFiles } from './files.js';
import type { RunValues } from './values.js';

/** How often it is checked whether all sub-requests that were appended have been run, in ms. */
const IDLE_CHECK_MS = 200;

/**
 * Appends all items and seals the request. When an item or an input is wrong, it waits until the sub-requests before it
 * have been run and then cancels the request: a sealed request would seem to have all of its input.
 * Records that are no items go to `badRows`, and all items to `outDir`, if there is one. When an earlier run has appended
 * all items, the input is read for these only.
 * @returns the error of the item or input, if there was one
 */
export async function feed(
  items: Input,
  open: Pick<OpenRequest, 'append' | 'flush' | 'seal' | 'cancel' | 'allIn'>,
  handle: RequestHandle,
  { json, exec }: Pick<RunValues, 'json' | 'exec'>,
  stopping: AbortSignal,
  { badRows, outDir }: Pick<RunFiles, 'badRows' | 'outDir'>,
): Promise<unknown> {
  if (open.allIn && !badRows && !outDir) return undefined;
  const warning = json || exec !== undefined ? undefined : new LossWarning(items);
  items.onLeftOut((one) => badRows?.add(one));
  try {
    for await (const item of outDir?.noting(items) ?? items) {
      if (stopping.aborted) return undefined;
      if (open.allIn) continue;
      warning?.check(item);
      await open.append(item);
    }
    if (stopping.aborted) return undefined;
    await badRows?.end();
    if (!open.allIn) await open.seal();
    return undefined;
  } catch (error) {
    if (stopping.aborted || error instanceof AbortError) return undefined;
    // The request ended before all items were appended: its outcome says why.
    if (error instanceof SealedError && error.status !== 'sealed') return undefined;
    const wrong = items.blame(error);
    if (open.allIn) return wrong;
    try {
      await open.flush();
      // Only now all that was read is in the request: it may be the request that takes no more.
      if (!json && wrong instanceof Error && !stopping.aborted)
        say(`${wrong.message}; what was read before that is run, the rest is not read`);
      await untilIdle(handle, stopping);
    } catch {
      // The request cannot be continued, as `wrong` says.
    }
    if (stopping.aborted) return wrong;
    await open.cancel().catch(() => {
      throw wrong;
    });
    return wrong;
  }
}

/** Resolves when the request has no sub-request left to run, or when `stopping` aborts. */
async function untilIdle(handle: RequestHandle, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    const { status, counts } = await handle.status();
    const left = counts.ready + counts.inFlight + counts.delayed;
    if (status !== 'open' || left === 0) return;
    await pause(IDLE_CHECK_MS, stopping);
  }
}
