/* What passes (time), what goes wrong by itself, who looks on, and who gives orders. */

#define SLOW_ONES (holds[0] || holds[W - 1] || holdsT[0] || holdsT[TICKERS - 1] || holdsP[0] || holdsP[1])
#define PRODUCER_LIVES (!producerGone[0] || (PRODUCERS > 1 && !producerGone[1]))

/*
 * What cannot be created when a state is gone: it is too old, or, after a retention below the create
 * window, the empty stream says that its life is over.
 */
#if defined(SHORT_RETENTION)
#define OUTLIVED tooOld
#elif defined(NO_VOID_BEYOND_RETENTION)
#define OUTLIVED r.generation
#else
#define OUTLIVED (r.voided > r.generation -> r.voided : r.generation)
#endif

#define ENDED_LEASE (r.lease[0] == 2 || r.lease[W - 1] == 2)

/* Time: each thing that is due comes, some time, whatever else happens. */
active proctype Clock() {
  byte i;
end:
  do
  :: d_step { q.passed == 1 && (!SLOW_ONES) -> q.passed = 2; touched = 1 }
  :: d_step { q.passed == 1 && SLOW_ONES && slow > 0 -> slow--; q.passed = 2; touched = 1 }
  :: d_step { r.status == OPEN && !r.producerOver && !PRODUCER_LIVES -> r.producerOver = 1; touched = 1 }
  :: d_step { r.status == OPEN && !r.producerOver && PRODUCER_LIVES && late_ > 0 -> late_--; r.producerOver = 1; touched = 1 }
  :: d_step { r.lease[0] == 1 && believed[0] == 0 -> r.lease[0] = 2; touched = 1 }
  :: d_step { r.lease[0] == 1 && believed[0] > 0 && zombies > 0 -> zombies--; r.lease[0] = 2; touched = 1 }
#if W > 1
  :: d_step { r.lease[1] == 1 && believed[1] == 0 -> r.lease[1] = 2; touched = 1 }
  :: d_step { r.lease[1] == 1 && believed[1] > 0 && zombies > 0 -> zombies--; r.lease[1] = 2; touched = 1 }
#endif
  :: d_step { r.due[0] == LATER -> r.due[0] = NOW; touched = 1 }
#if N > 1
  :: d_step { r.due[1] == LATER -> r.due[1] = NOW; touched = 1 }
#endif
#ifdef HELD
  :: d_step { r.heldUntil == LATER -> r.heldUntil = NOW; touched = 1 }
#endif
#ifdef DEADLINE
  :: d_step { r.deadline == LATER -> r.deadline = NOW; touched = 1 }
#endif
#if EXPIRE > 0
  :: d_step { expire > 0 && r.status == COMPLETE -> expire--; tooOld = OUTLIVED; unlinkAll(); r.status = NOBODY; r.generation = 0; r.voided = 0; r.owner = 0;
      r.total = 0; r.succeeded = 0; r.failed = 0; r.cancelled = 0;
      for (i_ : 0 .. N) { r.entry[i_] = 0; r.outcomes[i_] = 0 }
      touched = 1 }
#endif
  :: atomic { eat > 0 && q.tokens > 0 -> eat--; pop(); rGeneration = 0 }
  :: d_step { noticesLost > 0 && notice -> noticesLost--; notice = 0 }
  od
}

/*
 * Faults are finite: from some moment on there are none, whether all of them were used or not. What
 * stands still then has nothing to wait for, as a fault might happen to mend it.
 */
active proctype Calm() {
  atomic {
    die = 0; producerDies = 0; tickerDies = 0; eat = 0; zombies = 0; again = 0; lost = 0; fails = 0;
    closes = 0; yields = 0; slow = 0; late_ = 0; expire = 0; rollQ = 0; rollR = 0; noticesLost = 0;
    cuts = 0; calm = 1
  }
}

#ifdef TICKS_AT_LEASES
#define MAY_DIE false
#else
#define MAY_DIE (TICKERS > 0)
#endif

#if CANCEL > 0
active proctype Canceller() {
  byte g; byte v = GONE;
  if
  :: atomic { LIVES(q.open) && q.open != 0 -> choose(); g = q.open; cancel(g); v = verdict; mayRepeat(G_CANCEL, NO_ONE, g, 0, 0, 0, 0, 0, 0) }
  :: calm
  fi;
  if
  :: atomic { v == ENDED -> finish(g) }
  :: atomic { v == OK -> if :: rLater = 0 :: q.agenda > 1 -> rLater = 1 fi; note(g) }
  :: v == GONE
  :: MAY_DIE                      /* somebody else has to follow it up */
  fi
}
#endif

#if DROP > 0
active proctype Dropper() {
  byte g; byte v = GONE;
  if
  :: atomic { r.status != NOBODY && r.status != VOID -> drop(r.generation); g = rGeneration; v = verdict }
  :: calm
  fi;
  if
  :: atomic { v == OK -> choose(); finish(g); mayRepeat(G_FINISH, NO_ONE, g, 0, 0, 0, 0, 0, 0) }
  :: v != OK
  :: MAY_DIE                      /* somebody else has to follow it up */
  fi
}
#endif

#ifdef NOTIFIER
/* Subscribes, reads, waits; reads again after each reconnect and, if configured, from time to time. */
active proctype Notifier() {
connect:
  atomic { subscribed = 1 }
#ifndef NO_READ_ONCE_SUBSCRIBED
  goto read_;
#endif
wait_:
  if
  :: d_step { notice -> notice = 0 }; goto read_
  :: atomic { cuts > 0 -> cuts--; subscribed = 0; notice = 0 }; goto lostConnection
#ifdef SLOW_TIMER
#ifndef NO_SLOW_READ
  :: r.status == COMPLETE || r.status == DROPPED -> goto read_
#endif
#endif
  fi;
lostConnection:
  atomic { subscribed = 1 }
#ifdef NO_READ_AFTER_RECONNECT
  goto wait_;
#endif
read_:
  if
  :: d_step { r.status == COMPLETE || r.status == DROPPED -> notified = 1; notice = 0 }; goto done
  :: else -> goto wait_
  fi;
done:
  skip
}
#endif

#if ROLLBACK_QUEUE > 0
Queue qBefore, nothingQ; bit qKept;
#endif
#if ROLLBACK_REQUEST > 0
Request rBefore_, nothingR; bit rKept;
#endif
#include "rollback.pml"

/*
 * When nobody can do anything any more: every run ends (no cycle, which the checker looks for
 * apart), and this is how it has to end. Together that is: sealed leads to complete, and complete
 * leads to notified and clean, whatever the finite faults were.
 */
active proctype End() {
  timeout;
  assert(!LIVING);                                       /* sealed, or given up, leads to complete */
#ifndef NO_LOOK_AT_CLEAN
  assert(q.open == 0 && q.agenda == 0 && q.tokens == 0); /* complete leads to clean */
  assert(!q.waits && q.mark == 0 && !q.parked);
#endif
#ifdef NOTIFIER
  assert(notified || (r.status != COMPLETE && r.status != DROPPED))
#endif
#if !defined(DEADLINE) && CANCEL == 0 && DROP == 0 && EXPIRE == 0 && ROLLBACK_REQUEST == 0 && LATE == 0
  /* what a producer sealed is there, all of it, each counted once */
  assert(!(sealed[0] || sealed[1]) || (r.status == COMPLETE && r.succeeded + r.failed + r.cancelled == N))
  assert(!(sealed[0] || sealed[1]) || r.cancelled == 0)
#endif
}
