import type { Outcome } from '@piecework/protocol';
import type { Scene } from '../../support/given.js';

/** What a worker knows of one generation of one request, from its first permit to its last. */
export class Session {
  readonly scene: Scene;
  readonly generation: number;
  permits = 0;
  dueNow = 0;
  /** End of its lease, by the worker's clock. */
  leaseEnds = 0;
  /** Whether the server's clock went forward since the lease was confirmed: the lease may have ended there. */
  doubtful = false;
  /** Time of the tend that it scheduled last. */
  tendAt = 0;
  leaving = false;
  readonly running = new Set<string>();
  /** A suspect that waits until nothing else runs in this worker. */
  suspect: string | undefined;
  /** Entries whose handlers outlived the lease: a success of one still counts. */
  readonly outlived = new Set<string>();
  outcomes: Outcome[] = [];

  constructor(scene: Scene, generation: number) {
    this.scene = scene;
    this.generation = generation;
  }

  /** Permits that nothing uses. */
  get spare(): number {
    return Math.max(0, this.permits - this.busy);
  }

  /** What needs a permit. */
  get busy(): number {
    return this.running.size + (this.suspect === undefined ? 0 : 1);
  }

  /** Whether a handler runs or has ended without its outcome being settled. */
  get unsettled(): boolean {
    return this.running.size + this.outlived.size + this.outcomes.length > 0;
  }

  get ended(): boolean {
    return this.permits + this.busy === 0 && !this.unsettled;
  }

  confirmLease(ends: number): void {
    this.leaseEnds = ends;
    this.doubtful = false;
  }

  loseLease(): void {
    this.suspect = undefined;
    for (const entry of this.running) this.outlived.add(entry);
    this.running.clear();
    this.outcomes = this.outcomes.filter(({ kind }) => kind === 's');
    this.permits = 0;
  }
}
