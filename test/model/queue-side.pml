/* The scripts of the queue side. Each is one step. */

/* script: intent */
inline intent() {
  x_ = 0;
  if
  :: q.open == 0 -> generations++; q.open = generations; q.agenda = 1; touched = 1
  :: else
  fi;
  rGeneration = q.open
}

/* lua/lib/push.lua */
inline pushTokens(life, count, epoch) {
  x_ = 0;
  if
  :: q.open == life && count > 0 ->
    for (i_ : 1 .. count) {
      assert(q.tokens < LISTED);
      q.list[q.tokens] = life * EPOCHS + epoch; q.tokens++
    }
    touched = 1
  :: else
  fi
}

/* script: push */
inline push(life_, mint_, epoch_) {
  pushTokens(life_, mint_, epoch_)
}

/* BRPOP, and the second half of `exchange`. */
inline pop() {
  rGeneration = q.list[0] / EPOCHS; rEpoch = q.list[0] % EPOCHS;
  for (i_ : 1 .. LISTED - 1) { q.list[i_ - 1] = q.list[i_] }
  q.list[LISTED - 1] = 0;
  q.tokens--;
  if
  :: q.ahead > 0 -> q.ahead--
  :: else
  fi;
  touched = 1
}

/* script: exchange */
inline exchange(life_, mint_, epoch_) {
  pushTokens(life_, mint_, epoch_);
  if
  :: q.tokens > 0 -> pop()
  :: else -> rGeneration = 0
  fi
}

/* script: schedule-tend */
inline note(life_) {
  x_ = 0;
  if
  :: q.open == life_ -> q.agenda = 1; touched = 1   /* a claim in the way is none any more */
  :: else
  fi
}

/* script: park */
inline parkTask(life_) {
  x_ = 0;
  if
  :: q.open == life_ -> q.parked = 1; touched = 1
  :: else
  fi
}

inline sweep() {
  x_ = 0;
  if
  :: q.open == 0 ->
    for (i_ : 0 .. LISTED - 1) { q.list[i_] = 0 }
    q.tokens = 0; q.ahead = 0
  :: else
  fi
}

/* script: deregister */
inline depart() {
  sweep()
}

/* script: finish */
inline finish(life_) {
  x_ = 0;
  if
#ifdef NO_GENERATION_ON_FINISH
  :: q.open != 0 ->
#else
  :: q.open == life_ ->
#endif
    q.open = 0; q.mark = 0; q.passed = 0; q.waits = 0; q.agenda = 0; q.parked = 0;
    assert(q.finished != life_); q.finished = life_;
    touched = 1
  :: else
  fi;
  sweep()
}

/* script: tick */
inline tick(by_) {
  rGeneration = 0; rBefore = 0;
  if
  :: q.waits && q.ahead == 0 ->
    q.waits = 0; q.passed = 1;
    agendaLater(); touched = 1
  :: else
  fi;
  if
  :: q.agenda != 0 && q.open != 0 && touched ->
    touched = 0;
    q.agenda = 2 + by_; rGeneration = q.open;
    /* a claim is a time: an earlier one by the same process is another */
    if
    :: gKind == G_WRITE_BACK && ga == by_ -> ga = TICKERS
    :: else
    fi;
    rBefore = (q.passed == 2 -> q.mark : 0)
  :: q.agenda != 0 && q.open == 0 -> q.agenda = 0
  :: else
  fi
}

/* script: write-back */
inline writeBack(by_, life_, mint_, epoch_, before_, next_, isParked_) {
  pushTokens(life_, mint_, epoch_);
  if
  :: q.open == life_ && q.agenda == 2 + by_ ->
    if
    :: before_ == 0 ->
      q.mark = 0; q.passed = 0; q.waits = 0; q.ahead = 0
    :: before_ != 0 && q.mark != before_ ->
      q.mark = before_; q.passed = 0; q.waits = 1; q.ahead = q.tokens; touched = 1
    :: else
    fi;
    q.parked = isParked_;
    /* no next_ time, and nothing to wake it: looked at in any case, some time */
    q.agenda = (next_ || q.passed != 0 || !q.waits -> 1 : 0)
  :: else
  fi
}

/* script: reopen */
inline reopen(life_) {
  x_ = 0;
  if
  :: q.open < life_ ->
    q.open = life_; q.agenda = 1; touched = 1;
    if
    :: q.finished == life_ -> q.finished = 0
    :: else
    fi
  :: else
  fi
}
