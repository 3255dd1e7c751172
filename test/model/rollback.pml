/*
 * The server loses the last writes of one hash slot: a copy is kept at any moment, and comes back at
 * any later one. What the processes know is not rolled back.
 */
#define KEEP_WORKER(i, from, to) \
  to.permits[i] = from.permits[i]; to.lease[i] = from.lease[i]; to.op[i] = from.op[i]
#define KEEP_ENTRY(i, from, to) \
  to.entry[i] = from.entry[i]; to.owned[i] = from.owned[i]; to.due[i] = from.due[i]; \
  to.tries[i] = from.tries[i]; to.crashes[i] = from.crashes[i]; to.alone[i] = from.alone[i]; \
  to.outcomes[i] = from.outcomes[i]

inline copyRequest(from_, to_) {
  to_.status = from_.status; to_.generation = from_.generation; to_.voided = from_.voided; to_.owner = from_.owner;
  to_.total = from_.total; to_.succeeded = from_.succeeded; to_.failed = from_.failed; to_.cancelled = from_.cancelled;
  to_.granted = from_.granted; to_.out = from_.out; to_.outBefore = from_.outBefore; to_.epoch = from_.epoch;
  to_.parked = from_.parked; to_.producerOver = from_.producerOver; to_.known = from_.known;
  to_.compact = from_.compact; to_.heldUntil = from_.heldUntil; to_.deadline = from_.deadline;
  for (i_ : 0 .. W - 1) { KEEP_WORKER(i_, from_, to_) }
  for (i_ : 0 .. N) { KEEP_ENTRY(i_, from_, to_) }
  i_ = 0
}

inline copyQueue(from_, to_) {
  to_.open = from_.open; to_.agenda = from_.agenda; to_.waits = from_.waits; to_.ahead = from_.ahead;
  to_.mark = from_.mark; to_.passed = from_.passed; to_.tokens = from_.tokens; to_.parked = from_.parked;
  to_.finished = from_.finished;
  for (i_ : 0 .. LISTED - 1) { to_.list[i_] = from_.list[i_] }
  i_ = 0
}

#if ROLLBACK_QUEUE > 0 || ROLLBACK_REQUEST > 0
active proctype Server() {
end:
  do
#if ROLLBACK_QUEUE > 0
  :: d_step { rollQ > 0 && !qKept -> qKept = 1; copyQueue(q, qBefore) }
  :: d_step { rollQ > 0 && qKept -> rollQ--; copyQueue(qBefore, q); qKept = 0; copyQueue(nothingQ, qBefore); touched = 1 }
#endif
#if ROLLBACK_REQUEST > 0
  :: d_step { rollR > 0 && !rKept -> rKept = 1; copyRequest(r, rBefore_) }
  :: d_step { rollR > 0 && rKept -> rollR--; copyRequest(rBefore_, r); rKept = 0; copyRequest(nothingR, rBefore_); touched = 1;
      /* who runs under permits that the server forgot is a zombie */
      for (i_ : 0 .. W - 1) { zombie[i_] = zombie[i_] || running[i_] > r.permits[i_] }
      i_ = 0 }
#endif
#ifndef NO_REPAIR
  /* an operator runs admin.repair(), some time after it happened */
  :: d_step { rollQ + rollR == 0 && LIVING && q.open < r.generation -> reopen(r.generation) }
#endif
  od
}
#endif
