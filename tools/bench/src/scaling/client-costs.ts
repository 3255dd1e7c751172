import type { ClientCosts } from './costs.js';
import { type RealRun, type RealSetting, realRun } from './real-run.js';

/** Two runs of one worker with handlers that do nothing: short turns, and long ones. */
const TURNS = [10, 100] as const;

const settingOf = (concurrency: number, size: number): RealSetting => ({
  ...{ masters: 1, workers: 1, concurrency, quantumMs: 50, handlerMs: 0 },
  ...{ requests: 1, limit: concurrency, size },
});

/** What a worker process spends per turn and per outcome, from its CPU time at two lengths of turn. */
export async function measureClient(size: number): Promise<ClientCosts> {
  const [short, long] = [
    await realRun(settingOf(TURNS[0], size)),
    await realRun(settingOf(TURNS[1], 4 * size)),
  ];
  return clientCosts(perOutcome(short), perOutcome(long));
}

interface PerOutcome {
  readonly turns: number;
  readonly micros: number;
}

/** The line through two points; both of its numbers are at least a microsecond. */
export function clientCosts(short: PerOutcome, long: PerOutcome): ClientCosts {
  const perTurn = (short.micros - long.micros) / (short.turns - long.turns);
  const perTurnMicros = Math.max(1, perTurn);
  const perOutcomeMicros = Math.max(1, long.micros - perTurnMicros * long.turns);
  return { perTurnMicros, perOutcomeMicros };
}

const perOutcome = ({ counts, clientMicros, settled }: RealRun): PerOutcome => ({
  turns: (counts['settle'] ?? 0) / settled,
  micros: clientMicros / settled,
});
