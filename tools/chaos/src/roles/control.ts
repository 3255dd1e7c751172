import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  DroppedError,
  EndedError,
  ExpiredError,
  NotCompleteError,
  NotFoundError,
  PieceworkError,
} from '@piecework/protocol';
import type { Piecework } from 'piecework';
import type { Plan, Step } from '../contract/plan.js';
import { insist, nowNs, type Role } from './role.js';

/*
 * Takes the control steps of a request, in the process that the desk asks. A step that comes too late, because the
 * request has ended, counts as done.
 */

/** A marker file: from its creation on, no item of the request fails. */
export const healedBy = (folder: string, id: string): string => join(folder, `healed-${id}`);

const isOver = (error: unknown): boolean =>
  (error instanceof PieceworkError && error.code === 'LOST') ||
  [EndedError, DroppedError, ExpiredError, NotFoundError].some((kind) => error instanceof kind);

export async function control(
  { argument, journal, report }: Role,
  pw: Piecework,
  plan: Plan,
  number: number,
): Promise<void> {
  const { id: request } = plan;
  const step = plan.steps[number] as Step;
  const { act, limit } = step;
  const note = (error: PieceworkError) => {
    const { code, message } = error;
    journal.write({ failed: 'control', request, step: number, act, code, message });
  };
  let generation = 0;
  let sinceNs = nowNs();
  try {
    if (act === 'redrive') writeFileSync(healedBy(argument.journals, request), '');
    await insist(async () => {
      sinceNs = nowNs();
      journal.write({ does: 'control', request, step: number, act, limit });
      generation = await acts[act](pw.request(request), step);
    }, note);
    journal.write({ did: 'control', request, step: number, act });
  } catch (error) {
    if (!isOver(error)) {
      report({ report: 'gave up', id: request, code: `${act}: ${error}` });
      return;
    }
    note(error as PieceworkError);
  }
  report({ report: 'controlled', id: request, step: number, generation, sinceNs });
}

type Handle = ReturnType<Piecework['request']>;

const acts: Record<Step['act'], (handle: Handle, step: Step) => Promise<number>> = {
  pause: (handle) => handle.pause().then(() => 0),
  resume: (handle) => handle.resume().then(() => 0),
  limit: (handle, { limit }) => handle.update({ limit }).then(() => 0),
  priority: (handle, { priority }) => handle.update({ priority }).then(() => 0),
  cancel: (handle) => handle.cancel().then(() => 0),
  drop: (handle) => handle.drop().then(() => 0),
  redrive: redriveAll,
};

/** If a redrive was cut off, its generation is sealed when its lease ends; then the rest is redriven. */
async function redriveAll(handle: Handle): Promise<number> {
  for (;;) {
    try {
      return (await handle.redrive()).generation;
    } catch (error) {
      if (!(error instanceof NotCompleteError)) throw error;
      await sleep(200);
    }
  }
}
