/*
 * A small request is one string at first (lua/lib/compact.lua). Here it is the same state with the bit `compact`: as long
 * as that is set nothing of it is in a stream, and the one worker that has permits has all of it.
 */

#define ALL ((1 << r.total) - 1)

/* Makes the stream. What a worker has is pending there, as its own. */
inline expand() {
  if
  :: r.compact ->
    r.compact = 0; touched = 1;
#ifndef NO_PENDING_IN_STREAM
    for (i_ : 0 .. N - 1) {
      for (j_ : 0 .. W - 1) {
        if
        :: i_ < r.total && r.permits[j_] > 0 -> r.entry[i_] = PENDING; r.owned[i_] = j_
        :: else
        fi
      }
    }
#endif
  :: else
  fi
}

#ifdef NO_ONE_WORKER
#define FREE true
#else
#define FREE (r.granted == 0)
#endif
#ifdef NO_SERVED_COMPACT
#define FOR(serves) true
#else
#define FOR(serves) (serves)
#endif
#define ENTERS_COMPACT(wants, token, serves) \
  (r.compact && FREE && FOR(serves) && r.total <= wants && r.total <= LIMIT && token + 1 >= r.epoch)

/* Its one enter, if the worker has room for all of it. */
inline enterCompact(me_, epoch_) {
  touched = 1;
  countToken(epoch_);
  for (j_ : 0 .. W - 1) { r.permits[j_] = 0; r.lease[j_] = 0; r.op[j_] = 0 }
  r.granted = r.total; r.permits[me_] = r.total; r.lease[me_] = 1;
  recorded(me_);
  rGot = ALL;
  check()
}

#ifdef NO_HOLDER_CHECK
#define HAS_COMPACT(w) true
#else
#define HAS_COMPACT(w) (r.permits[w] > 0)
#endif
#ifdef NO_WHOLE_SETTLE
#define IS_WHOLE(mask) (mask)
#else
#define IS_WHOLE(mask) ((mask) == ALL)
#endif
#define SETTLES_COMPACT(w, good, bad) \
  (r.compact && HAS_COMPACT(w) && IS_WHOLE(good | bad) && (bad == 0 || ATTEMPTS == 1))

/* Its one settle: all have ended, so it is complete. */
inline settleCompact(good_, bad_) {
  touched = 1; permits_ = 0;
  assert(r.granted > 0);          /* what no worker has is settled by none */
  for (i_ : 0 .. N - 1) {
    if
    :: good_ & (1 << i_) -> r.entry[i_] = SETTLED; r.succeeded++; counted(i_)
    :: !(good_ & (1 << i_)) && (bad_ & (1 << i_)) ->
      assert(ran[i_] >= ATTEMPTS);
      r.entry[i_] = SETTLED; r.failed++; counted(i_)
    :: else
    fi
  }
  r.compact = 0;
  complete()
}

#ifdef NO_EXPANDING_TEND
#define TENDED_COMPACT true
#else
#define TENDED_COMPACT (r.granted == 0)
#endif
#ifdef NO_COMPACT_DEADLINE
#define IN_TIME true
#else
#define IN_TIME (r.deadline != NOW)
#endif
#ifdef NO_WAIT_FOR_START
#define STARTED true
#else
#define STARTED (r.heldUntil != LATER)
#endif

/* While nobody has it: a token may be lost, or due. */
inline tendCompact(passed_) {
  verdict = OK;
  audit(passed_);
  if
  :: STARTED && r.out + r.outBefore == 0 -> mint(1); changed = 1
  :: else
  fi;
  rBefore = (r.outBefore > 0 -> r.epoch - 1 : 0);
  rNext = (rMint > 0 || r.heldUntil == LATER || r.deadline == LATER);
  rEpoch = r.epoch
}
