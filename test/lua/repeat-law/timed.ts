import { TimedCommands, type TimedOutcome } from '@piecework/protocol';
import { moveClock } from '../../support/clock.js';
import { given, type Scene } from '../../support/given.js';
import type { Call } from './calls.js';

/* Timed sets for the repeat law: one of the same name as the scene's queue. */

const LEASE_MS = 5_000;
const TOKEN = 'worker~1';

const commandsOf = ({ connection, queue }: Scene) =>
  new TimedCommands(connection, 'retry', queue.keys.queue);

/** Keys in every state that there is: due, to come, taken, moved and removed while taken, out of lease. */
export async function timedSet(): Promise<Scene> {
  const scene = await given.opened();
  const commands = commandsOf(scene);
  const put = (number: number, keys: readonly string[], time: number | `+${number}`) =>
    commands.put(
      'producer',
      number,
      keys.map((key) => ({ key, time, token: '', payload: '1' })),
    );
  await put(1, ['ended'], 1);
  await commands.take('gone', 1, 1, LEASE_MS);
  moveClock(LEASE_MS);
  await put(2, ['taken', 'moved', 'removed'], 0);
  await commands.take('worker', 1, 3, LEASE_MS);
  await put(3, ['moved'], 9);
  const outcome = { key: 'removed', token: '', verb: 'remove', value: '' } as const;
  await commands.settle('producer', 1, 3, [outcome]);
  await put(4, ['due'], 1);
  await put(5, ['later'], '+60000');
  return scene;
}

const VERBS = ['done', 'retry', 'back', 'discard', 'keep', 'remove'] as const;

function outcomes(verb: TimedOutcome['verb']): TimedOutcome[] {
  const value = verb === 'retry' ? '+5' : verb === 'keep' ? LEASE_MS : '';
  const token = verb === 'remove' ? '' : TOKEN;
  return ['taken', 'moved', 'removed', 'ended', 'due', 'absent'].map((key) => ({
    ...{ key, token, verb, value },
  }));
}

export const timedCalls: readonly Call[] = [
  ...VERBS.map(
    (verb): Call => ({
      script: 'timed-settle',
      name: verb,
      send: (scene) => commandsOf(scene).settle('caller', 2, 3, outcomes(verb)),
    }),
  ),
  ...['', TOKEN].map(
    (token): Call => ({
      script: 'timed-put',
      name: `with the token '${token}'`,
      send: (scene) =>
        commandsOf(scene).put(
          'caller',
          2,
          ['taken', 'moved', 'removed', 'ended', 'new'].map((key) => ({
            ...{ key, token, time: '+7', payload: '2' },
          })),
        ),
    }),
  ),
  ...[1, 2].map(
    (number): Call => ({
      script: 'timed-take',
      name: `number ${number}`,
      send: (scene) => commandsOf(scene).take('worker', number, 10, LEASE_MS),
    }),
  ),
  { script: 'timed-counts', name: '', send: (scene) => commandsOf(scene).counts() },
  { script: 'timed-failures', name: '', send: (scene) => commandsOf(scene).failures('', 9) },
];
