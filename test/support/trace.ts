import { describe, expect, it } from 'vitest';
import { type Mutation, withMutations } from './clock.js';

/** A short history of scripts that goes wrong without a certain cure. Its name is a sentence that says what holds. */
export interface Trace {
  readonly play: () => Promise<void>;
  /** Edits that take the cure out. With each of them (of a list: with all of it) the history has to fail. */
  readonly without: readonly (Mutation | readonly Mutation[])[];
  /** What the history requires of its server (see mode.ts). */
  readonly tags?: readonly string[];
}

/**
 * Plays every history against the scripts as they are, and against scripts from which the cure was taken out: there it
 * has to fail. So no cure is lost unnoticed, and no test stays that would pass without its cure.
 */
export function playTraces(title: string, traces: Readonly<Record<string, Trace>>): void {
  describe(title, () => {
    for (const [says, { play, without, tags = [] }] of Object.entries(traces)) {
      const options = { tags: [...tags] };
      it(says, options, play);
      for (const [i, mutation] of without.entries()) {
        const part = without.length > 1 ? `, part ${i + 1}` : '';
        it(`${says}: fails without its cure${part}`, options, async () => {
          await withMutations([mutation].flat(), async () => {
            const thrown = await play().then(
              () => undefined,
              (error: Error) => error,
            );
            expect(thrown, 'the history went well').toBeDefined();
            expect(thrown?.message).not.toMatch(/ompil|user_script|near/);
          });
        });
      }
    }
  });
}

/** What a call answers; an error of the server as its code. */
export const answerOf = (call: Promise<object | string>): Promise<object | string> =>
  call.catch((error: { code: string }) => ({ code: error.code }));
