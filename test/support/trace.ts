import { describe, expect, it } from 'vitest';
import { type Mutation, withMutations } from './clock.js';

/** A short history of scripts that would go wrong without a certain cure. */
export interface Trace {
  /** What holds, as a sentence. */
  readonly says: string;
  readonly play: () => Promise<void>;
  /** Takes out the cure; each on its own (a list: together) has to make the history fail. */
  readonly without: readonly (Mutation | readonly Mutation[])[];
  /** What the history needs of a server (see mode.ts). */
  readonly tags?: readonly string[];
}

/**
 * Plays every history twice: against the scripts as they are, and against scripts from which the
 * cure was taken out, where it has to fail. So a cure cannot be lost without notice, and a test that
 * would pass without its cure cannot stay.
 */
export function playTraces(title: string, traces: Readonly<Record<string, Trace>>): void {
  describe(title, () => {
    for (const [name, { says, play, without, tags = [] }] of Object.entries(traces)) {
      const options = { tags: [...tags] };
      it(`${says} (${name})`, options, play);
      for (const [i, mutation] of without.entries()) {
        const part = without.length > 1 ? `, part ${i + 1}` : '';
        it(`${name} fails without its cure${part}`, options, async () => {
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
