/* The scripts of the request side. Each is one step. */

/* script: create */
inline create(life_, who_) {
  x_ = 0;
  if
  :: r.status != NOBODY && (life_ < r.generation || (life_ == r.generation && (r.status == VOID || r.status == DROPPED))) ->
    verdict = VOIDED
  :: r.status != NOBODY && life_ == r.generation && r.owner == who_ && r.status == OPEN -> verdict = OK
  :: r.status != NOBODY && r.status != VOID && r.status != DROPPED && !(life_ == r.generation && r.owner == who_ && r.status == OPEN) && life_ >= r.generation ->
    verdict = EXISTS; rGeneration = r.generation;
#ifndef NO_REFUSED_GENERATION
    if
    :: life_ > r.generation && life_ > r.voided -> r.voided = life_
    :: else
    fi;
#endif
    touched = 1
  :: r.status == NOBODY && life_ <= tooOld -> verdict = VOIDED
  :: else ->
    /* over nothing, or over a tombstone of an earlier life */
    unlinkAll();
    for (j_ : 0 .. N) { r.entry[j_] = 0; r.outcomes[j_] = 0 }
    r.status = OPEN; r.generation = life_; r.owner = who_; r.voided = 0;
    r.total = 0; r.succeeded = 0; r.failed = 0; r.cancelled = 0; r.epoch = 1;
    verdict = OK; touched = 1
  fi
}

/* script: append */
inline append(life_, first_) {
  rMint = 0;
  if
  :: !LIVES(life_) -> verdict = GONE
  :: LIVES(life_) && r.status != OPEN -> verdict = REFUSED
  :: LIVES(life_) && r.status == OPEN && first_ > r.total -> verdict = GAP
  :: else ->
    verdict = OK;
    if
#ifdef NO_ABSOLUTE_TOTALS
    :: true ->
#else
    :: first_ + 1 > r.total ->
#endif
      assert(r.total < N);        /* a sub-request more than the producer had */
      r.entry[r.total] = UNREAD; r.total++; touched = 1
    :: else
    fi;
    r.producerOver = 0;
    books();
#ifndef NO_TOPUP_APPEND
    topUp();
#endif
    rEpoch = r.epoch
  fi
}

/* script: renew-producer */
inline renewProducer(life_) {
  x_ = 0;
  if
  :: LIVES(life_) && r.status == OPEN -> r.producerOver = 0
  :: else
  fi
}

/* script: seal */
inline seal(life_, sent_) {
  x_ = 0;
  if
  :: !LIVES(life_) -> verdict = GONE
  :: LIVES(life_) && r.status == COMPLETE -> verdict = ENDED
  :: LIVES(life_) && r.status == OPEN && r.total < sent_ -> verdict = GAP
  :: LIVES(life_) && r.status == OPEN && r.total >= sent_ ->
    r.status = SEALED; touched = 1;
    completeIfDone();
    verdict = (isEnded -> ENDED : OK)
  :: else -> verdict = OK
  fi
}

inline countToken(epoch_) {
  if
  :: epoch_ != 0 && epoch_ == r.epoch && r.out > 0 -> r.out--
  :: epoch_ != 0 && epoch_ == r.epoch - 1 && r.outBefore > 0 -> r.outBefore--
  :: else
  fi
}

/* script: enter */
inline enter(me_, life_, wants_, epoch_, serves_, isLate_) {
  rMint = 0; rDue = 0; rPermits = 0; rGot = 0;
  if
  :: !LIVES(life_) -> verdict = GONE
  :: LIVES(life_) && r.status == COMPLETE -> verdict = ENDED
  :: LIVES(life_) && ENTERS_COMPACT(wants_, epoch_, serves_) ->
    verdict = OK;
    enterCompact(me_, epoch_);
    rPermits = r.permits[me_]; rEpoch = r.epoch
  :: else ->
    verdict = OK;
    expand();
    books();
    rDue = dueNow;
    if
#ifdef NO_OP_IN_ENTER
    :: true ->
#else
    :: !isLate_ ->
#endif
      touched = 1;
      countToken(epoch_);
      recorded(me_);
      if
      :: !(serves_) -> r.parked = 1; verdict = UNSERVED_
      :: else ->
        r.parked = 0;
        wanted();
        x_ = want_ - r.granted;
        x_ = (x_ < wants_ -> x_ : wants_);
        x_ = (x_ > 0 -> x_ : 0);
        r.granted = r.granted + x_;
        r.permits[me_] = r.permits[me_] + x_;
        if
        :: r.permits[me_] > 0 -> r.lease[me_] = 1
        :: else
        fi;
        topUp();
        check()
      fi
    :: else -> verdict = (serves_ -> OK : UNSERVED_)
    fi;
    rPermits = r.permits[me_]; rEpoch = r.epoch
  fi
}

inline deliver(which_) {
#ifdef NO_TRIES
  delivered[which_]++
#else
  skip                            /* nobody looks at it */
#endif
}

/* XREADGROUP: no script, and no permit is asked for. */
inline readNew(me_, max_) {
  rGot = 0; x_ = max_;
  if
  :: LIVING && !r.compact ->
    for (i_ : 0 .. N - 1) {
      if
      :: x_ > 0 && r.entry[i_] == UNREAD ->
        r.entry[i_] = PENDING; r.owned[i_] = me_; rGot = rGot | (1 << i_); x_--; touched = 1;
        deliver(i_)
      :: else
      fi
    }
  :: else
  fi
}

/* script: take */
inline take(me_, life_, max_) {
  rGot = 0; x_ = max_;
  if
  :: !LIVES(life_) || r.status == COMPLETE -> verdict = GONE
  :: LIVES(life_) && r.status != COMPLETE && r.permits[me_] == 0 -> verdict = REFUSED
  :: else ->
    verdict = OK;
    for (i_ : 0 .. N - 1) {
      if
      :: x_ > 0 && r.due[i_] == NOW && r.status != CANCELLING ->
        r.due[i_] = 0; x_--; touched = 1; ranAlone[i_] = 0;
        if
        :: r.entry[i_] == PENDING -> r.owned[i_] = me_; rGot = rGot | (1 << i_); deliver(i_)
        :: else                   /* XCLAIM does not find it in the group */
        fi;
        r.alone[i_] = 0
      :: else
      fi
    }
  fi
}

/* script: run-alone */
inline runAlone(me_, life_, which_) {
  x_ = 0;
  if
  :: !LIVES(life_) || r.status == COMPLETE -> verdict = GONE
  :: LIVES(life_) && r.status != COMPLETE && (r.permits[me_] == 0 || r.entry[which_] != PENDING || r.owned[which_] != me_) -> verdict = REFUSED
  :: else -> verdict = OK; r.alone[which_] = me_ + 1; ranAlone[which_] = 1
  fi
}

/* script: renew */
inline renew(me_, life_) {
  x_ = 0;
  expand();
  if
  :: !LIVES(life_) || r.status == COMPLETE -> verdict = GONE
  :: LIVES(life_) && r.status != COMPLETE && r.permits[me_] == 0 -> verdict = REFUSED
  :: else -> verdict = OK; r.lease[me_] = 1
  fi
}

#ifdef NO_OWNER_CHECK
#define OWNS(w, i) (r.entry[i] == PENDING)
#else
#define OWNS(w, i) (r.entry[i] == PENDING && r.owned[i] == w)
#endif

/* script: settle */
inline settle(me_, life_, good_, bad_, back_, keep_, runs_, isLate_) {
  rMint = 0; rDue = 0; rPermits = 0; rLater = 0; gave = 0; freed = 0;
  if
  :: !LIVES(life_) -> verdict = GONE
  :: LIVES(life_) && r.status == COMPLETE -> verdict = ENDED
  :: LIVES(life_) && SETTLES_COMPACT(me_, good_, bad_) ->
    verdict = ENDED;
    settleCompact(good_, bad_)
  :: else ->
    verdict = OK;
    expand();
    y_ = 0;
    for (i_ : 0 .. N - 1) {
#if ROLLBACK_REQUEST == 0
      /* what was read is not unread again */
      assert(!((good_ | bad_ | back_) & (1 << i_)) || r.entry[i_] != UNREAD);
#endif
      y_ = y_ + ((good_ & (1 << i_)) && r.entry[i_] == PENDING)
    }
    for (i_ : 0 .. N - 1) {
      if
      :: (good_ & (1 << i_)) ->
        if
#if defined(NO_XACK_GATE)
        :: true ->
#elif defined(NO_XACK_GATE_EACH)
        :: y_ > 0 ->
#else
        :: r.entry[i_] == PENDING ->
#endif
          r.entry[i_] = SETTLED; r.succeeded++; counted(i_); touched = 1;
#ifndef NO_DUE_REMOVED
          r.due[i_] = 0
#endif
        :: else
        fi
#ifdef NO_OP_IN_SETTLE_FAILURES
      :: !(good_ & (1 << i_)) && ((bad_ | back_) & (1 << i_)) ->
#else
      :: !(good_ & (1 << i_)) && ((bad_ | back_) & (1 << i_)) && !(isLate_) ->
#endif
        gave = 1;
        if
        :: OWNS(me_, i_) ->
          touched = 1;
          if
#ifdef NO_CANCEL_OF_GIVEN_BACK
          :: r.status == CANCELLING && (bad_ & (1 << i_)) ->
#else
          :: r.status == CANCELLING ->
#endif
            r.entry[i_] = SETTLED; r.cancelled++; counted(i_)
          :: else ->
            if
            :: (bad_ & (1 << i_)) ->
              r.tries[i_]++;
#ifdef NO_TRIES
              x_ = delivered[i_];
#else
              x_ = r.tries[i_];
#endif
              if
              :: x_ < ATTEMPTS ->
#ifdef RETRY_AT_ONCE
                park(i_, NOW)
#else
                park(i_, LATER)
#endif
              :: else ->
                assert(ran[i_] >= ATTEMPTS);  /* failed by its own attempts, and by all of them */
                r.entry[i_] = SETTLED; r.failed++; counted(i_)
              fi
            :: else -> park(i_, NOW)
            fi
          fi
        :: else
        fi
      :: else
      fi
    }
    permits_ = r.permits[me_];
#if defined(NO_OP_IN_SETTLE) || defined(NO_ABSOLUTE_KEEP)
    if
    :: permits_ > 0 ->
#else
    if
    :: permits_ > 0 && !(isLate_) ->
#endif
#ifdef NO_ABSOLUTE_KEEP
      x_ = permits_;
      for (i_ : 0 .. N - 1) { x_ = x_ - (((good_ | bad_ | back_) & (1 << i_)) != 0) }
      x_ = (x_ > 0 -> x_ : 0);
#else
      x_ = (keep_ < permits_ -> keep_ : permits_);
#endif
      if
      :: r.status == CANCELLING && runs_ < x_ -> x_ = runs_
      :: else
      fi;
      freed = permits_ - x_;
      r.granted = r.granted - freed;
      r.permits[me_] = x_;
      r.lease[me_] = (x_ > 0 -> 1 : 0);
      if
      :: freed > 0 -> touched = 1
      :: else
      fi;
      recorded(me_);
#ifdef NO_OP_BEYOND_LEAVE
      if
      :: x_ == 0 -> r.op[me_] = 0
      :: else
      fi;
#endif
      check()
    :: else
    fi;
    completeIfDone();
    if
    :: isEnded -> verdict = ENDED
    :: else ->
      books();
#ifdef NO_TOPUP_LEAVE
      if
      :: gave -> topUp()
      :: else
      fi;
#else
      if
      :: freed > 0 || gave -> topUp()
      :: else
      fi;
#endif
      rDue = dueNow; rLater = (held > dueNow);
      rPermits = r.permits[me_]; rEpoch = r.epoch
    fi
  fi
}

/* script: cancel */
inline cancel(life_) {
  x_ = 0;
  if
  :: !LIVES(life_) -> verdict = GONE
  :: LIVES(life_) && r.status == COMPLETE -> verdict = ENDED
  :: else ->
    touched = 1;
    expand();
    cancelIdle();
    completeIfDone();
    verdict = (isEnded -> ENDED : OK)
  fi
}

/* script: drop */
inline drop(life_) {
  rGeneration = 0;
  if
  :: r.status == NOBODY || r.status == VOID || life_ > r.generation || (life_ < r.generation && r.status != DROPPED) -> verdict = GONE
  :: else ->
    verdict = OK;
    rGeneration = (r.voided > r.generation -> r.voided : r.generation);
    if
    :: r.status != DROPPED ->
      touched = 1;
      unlinkAll();
      for (j_ : 0 .. N) { r.entry[j_] = 0; r.outcomes[j_] = 0 }
      r.total = 0; r.succeeded = 0; r.failed = 0; r.cancelled = 0; r.owner = 0; r.voided = 0;
      r.status = DROPPED; r.generation = rGeneration;
      publish()
    :: else
    fi
  fi
}

inline withdrawExpired() {
  for (i_ : 0 .. W - 1) {
    endedNow[i_] = 0;
    if
    :: r.lease[i_] == 2 ->
      r.granted = r.granted - r.permits[i_];
      r.permits[i_] = 0; r.lease[i_] = 0; endedNow[i_] = 1; changed = 1;
      zombie[i_] = !dead[i_]
    :: else
    fi;
    if
    :: r.permits[i_] == 0 && r.op[i_] == 2 ->
      r.op[i_] = 0; changed = 1;
      /* Two looks after the leave: no call is as late as that. */
      if
      :: gWho == i_ && (gKind == G_ENTER || gKind == G_SETTLE) -> forgetRepeat()
      :: else
      fi
    :: r.permits[i_] == 0 && r.op[i_] == 1 -> r.op[i_] = 2; changed = 1
    :: else
    fi
  }
}

#ifdef NO_RECLAIM_FROM_ANY
#define MINE_TO_RECLAIM(i) endedNow[r.owned[i] % W]
#else
#define MINE_TO_RECLAIM(i) true
#endif

inline reclaim() {
  for (i_ : 0 .. N - 1) {
    if
    :: r.entry[i_] == PENDING && r.owned[i_] != PARKER && r.permits[r.owned[i_] % W] == 0 && MINE_TO_RECLAIM(i_) ->
      changed = 1;
#ifdef NO_EMPTY_CHECK
      r.entry[i_] = VANISHED; r.due[i_] = 0;
#else
      assert(r.due[i_] != LATER);  /* a delay that is lost */
      x_ = 0;
#ifdef NO_LATE_READ
      if
      :: true ->
#else
      if
      :: endedNow[r.owned[i_] % W] ->
#endif
        assert(endedNow[r.owned[i_] % W]);  /* held by nobody whose lease ended: no crash */
        if
        :: MAX_CRASHES == 9       /* without a limit nobody looks at it */
        :: MAX_CRASHES < 9 && r.crashes[i_] + 1 < MAX_CRASHES -> r.crashes[i_]++
        :: else ->
          if
#ifdef NO_ALONE_CHECK
          :: r.status != CANCELLING ->
#else
          :: r.status != CANCELLING && !(r.crashes[i_] > 0 && r.alone[i_] != r.owned[i_] + 1) ->
#endif
            x_ = 1;
            assert(MAX_CRASHES == 1 || ranAlone[i_]);  /* only what ran alone fails by a crash */
            r.entry[i_] = SETTLED; r.failed++; counted(i_)
          :: else
          fi
        fi
      :: else
      fi;
      if
      :: x_ == 0 -> r.owned[i_] = PARKER; r.due[i_] = NOW
      :: else
      fi
#endif
    :: else
    fi
  }
}

inline audit(passed_) {
  x_ = 0;
#ifndef NO_EPOCHS
  if
  :: r.outBefore > 0 && passed_ != 0 && passed_ == r.epoch - 1 -> r.outBefore = 0; changed = 1
  :: else
  fi;
  if
  :: r.outBefore == 0 && r.out > 0 ->
    r.outBefore = r.out; r.out = 0; r.epoch++; changed = 1;
    assert(r.epoch < EPOCHS)
  :: else
  fi
#endif
}

/* script: tend */
inline tend(life_, passed_) {
  rMint = 0; rBefore = 0; rNext = 0; rParked = 0; changed = 0;
  if
  :: !LIVES(life_) ->
    verdict = GONE;
#ifndef NO_TOMBSTONE
    if
    :: r.status == NOBODY || (r.generation < life_ && (r.status == VOID || r.status == DROPPED)) ->
      r.status = (r.status == DROPPED -> DROPPED : VOID); r.generation = life_
    :: r.status != NOBODY && r.generation < life_ && r.status != VOID && r.status != DROPPED ->
      r.voided = (life_ > r.voided -> life_ : r.voided)
    :: else
    fi
#endif
  :: LIVES(life_) && r.status == COMPLETE -> verdict = ENDED
  :: LIVES(life_) && r.compact && TENDED_COMPACT && IN_TIME -> tendCompact(passed_)
  :: else ->
    verdict = OK;
    expand();
#ifndef NO_PRODUCER_LEASE
    if
    :: r.status == OPEN && r.producerOver ->
#ifdef LOST_PRODUCER_CANCELS
      r.status = CANCELLING;
#else
      r.status = SEALED;
#endif
      changed = 1
    :: else
    fi;
#endif
    if
    :: r.deadline == NOW && r.status != CANCELLING -> r.status = CANCELLING; changed = 1
    :: else
    fi;
    withdrawExpired(); reclaim();
    if
    :: r.status == CANCELLING ->
      y_ = r.cancelled;
      cancelIdle();
      changed = changed | (y_ != r.cancelled)
    :: else
    fi;
    completeIfDone();
    if
    :: isEnded -> verdict = ENDED; changed = 1
    :: else ->
      audit(passed_);
      books();
#ifndef NO_TOPUP_TEND
      topUp();
#endif
      changed = changed | (rMint > 0);
      rBefore = (r.outBefore > 0 -> r.epoch - 1 : 0);
      rNext = (inFlight > 0 || r.granted > 0 || (r.out > 0 && rBefore == 0) || r.status == OPEN || held > dueNow || r.heldUntil == LATER || r.deadline == LATER);
      rParked = r.parked; rEpoch = r.epoch;
      check()
    fi
  fi;
  touched = touched | changed
}
