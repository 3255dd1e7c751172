import { PieceworkError } from './errors.js';

/** The condition of a queue failed, or its answer cannot be used; nothing was taken. */
export class ConditionError extends PieceworkError {
  override readonly name = 'ConditionError';

  constructor(queue: string, why: string, cause?: unknown) {
    super(`the condition of ${queue} cannot be used: ${why}`, { code: 'CONDITION', cause });
  }
}
