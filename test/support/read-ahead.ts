import { given, Hand, LEASE_MS, type Options, type Scene } from './given.js';

/* Settles that read more than there are permits for. */

type Outcomes = Parameters<Scene['request']['settle']>[3];
type Held = Partial<Parameters<Scene['request']['settle']>[2]> & { readonly read: number };

/** A settle by that hand which reads ahead; by default it keeps all permits, and as many handlers run. */
export async function readAhead(scene: Scene, hand: Hand, held: Held, outcomes: Outcomes = []) {
  if (held.op === undefined) hand.op += 1;
  const { op, grantNo, permits: keep } = hand;
  const numbers = { op, grantNo, leaseMs: LEASE_MS, keep, running: keep, ...held };
  const { request, generation } = scene;
  const { settled, entries, unsure } = await request.settle(
    generation,
    hand.name,
    numbers,
    outcomes,
  );
  if (settled.verdict !== 'ok') throw new Error(`settle: ${settled.verdict}`);
  hand.permits = settled.permits;
  return { ...settled, unsure, read: entries.map(({ index }) => index) };
}

/** A worker that runs `n` sub-requests under as many permits. */
export async function running(n: number, options: Options = {}) {
  const scene = await given.sealed({ items: 20, limit: n, ...options });
  const hand = new Hand(scene);
  const entries = await hand.hold(n);
  return { scene, hand, entries };
}
