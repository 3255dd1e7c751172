/* lua/lib: what several scripts include. */

inline books() {
  pend = 0; held = 0; dueNow = 0;
  for (i_ : 0 .. N - 1) {
    pend = pend + (r.entry[i_] == PENDING);
    held = held + (r.due[i_] != 0);
    assert(r.due[i_] == 0 || r.entry[i_] == PENDING);
    dueNow = dueNow + (r.due[i_] == NOW)
  }
  unread = r.total - (r.succeeded + r.failed + r.cancelled) - pend;
  ready = unread + dueNow;
  inFlight = pend - held
}

inline wanted() {
  want_ = 0;
  if
  :: (r.status == OPEN || r.status == SEALED) && ready > 0 && r.heldUntil != LATER ->
    want_ = (LIMIT < inFlight + ready -> LIMIT : inFlight + ready)
  :: else
  fi
}

inline mint(count_) {
  rMint = count_; r.out = r.out + count_;
  assert(r.granted + r.out + r.outBefore <= LIMIT)  /* each new token has room for a permit */
}

inline topUp() {
  rMint = 0;
  if
  :: !r.parked ->
    wanted();
    x_ = (r.granted > 1 -> r.granted : 1);
    x_ = (want_ - r.granted < x_ -> want_ - r.granted : x_) - (r.out + r.outBefore);
    if
    :: x_ > 0 -> mint(x_)
    :: else
    fi
  :: else
  fi
}

/* A sub-request gets its outcome: never a second one. */
inline counted(which) {
  r.outcomes[which]++;
  assert(r.outcomes[which] == 1);
  r.owned[which] = 0
}

inline park(which, when) {
  /* nobody runs it any more, but zombies */
  for (j_ : 0 .. W - 1) { assert(zombie[j_] || !(mine[j_] & (1 << which))) }
#ifndef NO_RESERVED_CONSUMER
  r.owned[which] = PARKER;
#endif
  r.due[which] = when
}

inline cancelIdle() {
  for (i_ : 0 .. N - 1) {
    if
    :: i_ < r.total && (r.entry[i_] == UNREAD || (r.entry[i_] == PENDING && r.due[i_] != 0)) ->
      r.entry[i_] = SETTLED; r.due[i_] = 0; r.cancelled++; counted(i_)
    :: else
    fi
  }
  r.status = CANCELLING
}

/* Everything that only served the running request goes; nothing reads it any more. */
inline unlinkAll() {
  for (j_ : 0 .. W - 1) { r.permits[j_] = 0; r.lease[j_] = 0; r.op[j_] = 0 }
  for (j_ : 0 .. N) {
    r.due[j_] = 0; r.owned[j_] = 0; r.tries[j_] = 0; r.crashes[j_] = 0; r.alone[j_] = 0; ran[j_] = 0
  }
  r.granted = 0; r.out = 0; r.outBefore = 0; r.epoch = 0; r.parked = 0; r.producerOver = 0;
  r.compact = 0; r.heldUntil = 0; r.deadline = 0
}

inline publish() {
  x_ = 0;
#ifndef PUBLISH_REFUSED
  if
  :: subscribed -> notice = 1
  :: else
  fi
#endif
}

inline complete() {
  for (j_ : 0 .. N - 1) {
    assert(j_ >= r.total || (r.entry[j_] == SETTLED && r.outcomes[j_] == 1))
  }
  r.status = COMPLETE; isEnded = 1;
  unlinkAll();
  publish()
}

inline completeIfDone() {
  isEnded = 0;
  assert(r.succeeded + r.failed + r.cancelled <= r.total);
  if
#if defined(PUBLISH_REFUSED) && defined(NO_STATE_BEFORE_PUBLISH)
  :: false                        /* the script ends at the publish, before it wrote anything */
#else
  :: (r.status == SEALED || r.status == CANCELLING) && r.succeeded + r.failed + r.cancelled >= r.total ->
#endif
    complete()
  :: else
  fi
}

inline check() {
  x_ = 0;
  for (j_ : 0 .. W - 1) { x_ = x_ + r.permits[j_] }
  assert(x_ == r.granted || r.status == COMPLETE);
  assert(r.granted <= LIMIT)
}

inline recorded(who) {
#if AGAIN > 0                     /* without a repeated call nobody looks at it */
  r.op[who] = 1;
#endif
  if
  :: gWho == who -> r.known = 1
  :: else
  fi
}

inline agendaLater() {            /* ZADD LT with a time that may or may not be earlier than a claim's */
  if
  :: q.agenda == 0 || rLater -> q.agenda = 1
  :: else
  fi
}
