/*
 * A worker process: pop, enter, then settle and read in one step until nothing is left, leave.
 * It may die before any step; what it held stays where it was.
 */

#ifdef UNSERVED
#define SERVES(w) (w == 0)
#else
#define SERVES(w) true
#endif
#define DIES_HERE :: atomic { die > 0 -> die--; dead[w] = 1; believed[w] = 0; running[w] = 0; mine[w] = 0; holds[w] = 0; zombie[w] = 0; touched = 1 }; goto over
#define COUNT(mask) ((mask & 1) + ((mask >> 1) & 1) + ((mask >> 2) & 1))
#define SUSPECT(i) (r.crashes[i] >= (MAX_CRASHES - 1 > 1 -> MAX_CRASHES - 1 : 1))

/* Handlers under permits, of all workers whose lease was not withdrawn. */
inline cap() {
  x_ = 0;
  for (j_ : 0 .. W - 1) { x_ = x_ + (zombie[j_] -> 0 : running[j_]) }
  assert(x_ <= LIMIT);
  mine[w] = hold & ~stopped;      /* nobody else runs the same, but zombies */
  assert(mine[w] == 0 || (SERVES(w) && r.heldUntil != LATER));
  for (j_ : 0 .. W - 1) { assert(j_ == w || zombie[w] || zombie[j_] || !(mine[j_] & mine[w])) }
}

inline lose() {                   /* what runs is told to stop, and may report all the same */
  stopped = hold; mine[w] = 0; running[w] = 0; zombie[w] = 0; work = 0
}

/* Starts what was read up to the permits in hand; the rest goes back unstarted. */
inline start() {
  for (i_ : 0 .. N - 1) {
    if
    :: (rGot & (1 << i_)) ->
      if
      :: work && running[w] < believed[w] -> hold = hold | (1 << i_); running[w]++
#ifndef NO_GIVE_BACK_UNSTARTED
      :: else -> back = back | (1 << i_)
#else
      :: else
#endif
      fi
    :: else
    fi
  }
  cap()
}

proctype Worker(byte w) {
  byte g, e, m, hold, stopped, good, bad, back, v, asked, keep;
  bit work, dueSeen, laterSeen;
idle:
  if
  :: atomic { q.tokens > 0 -> pop(); g = rGeneration; e = rEpoch; holds[w] = 1 }
#ifdef UNSERVED
#ifndef NO_PARKED_FOUND
  /* a tick tells it of parked tasks */
  :: d_step { q.parked && r.parked && SERVES(w) -> g = q.open; e = 0; holds[w] = 1; q.parked = 0; q.agenda = 1; touched = 1 }
#endif
#endif
  :: atomic { closes > 0 && W > 1 && !closed[1 - w] && !dead[1 - w] -> closes--; closed[w] = 1; depart() }; goto over
  fi;

entering:
  if
  DIES_HERE
  :: atomic {
      choose();
      enter(w, g, SLOTS, e, SERVES(w), false);
      v = verdict; believed[w] = rPermits; m = rMint; dueSeen = (rDue > 0);
      work = 1; holds[w] = 0; zombie[w] = 0;
      if
      :: pick == REPLY_LOST && rMint > 0 -> lost--; m = 0
      :: else
      fi;
      mayRepeat(G_ENTER, w, g, SLOTS, 0, SERVES(w), 0, 0, (v == OK || v == UNSERVED_));
#ifdef COMPACT
      if
      :: pick == REPLY_LOST && rGot -> lost--; expand(); back = rGot  /* entered by the call before; `pending` says so */
      :: else -> start()
      fi;
#endif
      holds[w] = (m > 0); e = (m > 0 -> rEpoch : 0)
    }
  fi;
  if
  :: v == OK
  :: v == ENDED -> goto ended
  :: v == GONE -> goto left
  :: v == UNSERVED_ ->
    if
    DIES_HERE
    :: atomic { choose(); if :: rLater = 0 :: q.agenda > 1 -> rLater = 1 fi; parkTask(g); mayRepeat(G_PARK, NO_ONE, g, 0, 0, 0, 0, 0, 0) }
    fi;
    goto left
  fi;

again_:
#ifdef NO_LEAVE_BEFORE_PUSH
  m = 0;
#endif
  if
  :: m > 0 && believed[w] == 0 && hold == 0 && back == 0 && !closed[w] ->
    /* it leaves and has a free slot: returns the tokens and takes the next, or returns them only */
    if
    DIES_HERE
    :: atomic { exchange(g, m, e); m = 0; holds[w] = (rGeneration != 0);
        if
        :: rGeneration != 0 -> g = rGeneration; e = rEpoch; goto entering
        :: else -> goto left
        fi }
    :: atomic { choose(); push(g, m, e); mayRepeat(G_PUSH, NO_ONE, g, m, e, 0, 0, 0, 0); m = 0; e = 0; holds[w] = 0 }
    fi
  :: m > 0 && !(believed[w] == 0 && hold == 0 && back == 0 && !closed[w]) ->
    if
    DIES_HERE
    :: atomic { choose(); push(g, m, e); mayRepeat(G_PUSH, NO_ONE, g, m, e, 0, 0, 0, 0); m = 0; e = 0; holds[w] = 0 }
    fi
  :: m == 0
  fi;
  if
  :: laterSeen ->
    /* it knows when its next retry is due */
    if
    DIES_HERE
    :: atomic { if :: rLater = 0 :: q.agenda > 1 -> rLater = 1 fi; note(g); laterSeen = 0 }
    fi
  :: !laterSeen
  fi;
  if
  :: believed[w] == 0 && hold == 0 && back == 0 -> goto left
  :: work && dueSeen && back == 0 && believed[w] > running[w] ->
    /* due work first */
    if
    DIES_HERE
    :: atomic {
        choose();
        asked = believed[w] - running[w];
        take(w, g, asked); v = verdict;
        mayRepeat(G_TAKE, w, g, asked, 0, 0, 0, 0, 0);
        if
        :: v == GONE -> goto left
        :: v == REFUSED -> believed[w] = 0; lose()
        :: else ->
          dueSeen = (COUNT(rGot) == asked);
          start()
        fi
      }
    fi;
    asked = 0;
#if MAX_CRASHES < 9
    /* with one slot every handler is alone; the server has to know it before a suspect runs */
    if
    :: hold && SUSPECT(hold >> 1) ->
      if
      DIES_HERE
      :: atomic { runAlone(w, g, hold >> 1); v = verdict;
          if
          :: v == GONE -> goto left
          :: v == REFUSED -> believed[w] = 0; hold = 0; mine[w] = 0; running[w] = 0; zombie[w] = 0; work = 0
          :: else
          fi }
      fi
    :: else
    fi;
#endif
    goto again_
  :: else
  fi;

  /* Which handlers have ended, and how. At least one, if nothing else is to be told. */
  if
  :: (hold & 1) && !(good & 1) && !(bad & 1) -> good = good | 1
  :: (hold & 2) && !(good & 2) && !(bad & 2) -> good = good | 2
  :: atomic { (hold & 1) && !(good & 1) && !(bad & 1) && fails > 0 -> fails--; bad = bad | 1; ran[0]++ }
  :: atomic { (hold & 2) && !(good & 2) && !(bad & 2) && fails > 0 -> fails--; bad = bad | 2; ran[1]++ }
  :: atomic { closes > 0 && hold && W > 1 && !closed[1 - w] && !dead[1 - w] ->
      closes--; closed[w] = 1; back = back | (hold & ~(good | bad)); work = 0 }
  :: atomic { yields > 0 && hold && work -> yields--; work = 0; good = hold & ~bad }
  :: good || bad || (work && !dueSeen && believed[w] > running[w]) || back || (!work && believed[w] > running[w])
  fi;
#ifdef COMPACT
  if
  :: atomic { r.compact && (good || bad) -> good = hold & ~(bad | back) }  /* all of it in one settle */
  :: true
  fi;
#endif
  if
  DIES_HERE
#ifdef COMPACT
  :: atomic { r.compact && r.lease[w] == 1 && !zombie[w] -> renew(w, g) }; goto again_
#endif
  /* the renewal comes first, and learns whether the lease is lost */
  :: atomic { r.lease[w] == 2 || zombie[w] -> renew(w, g); v = verdict;
      if
      :: v == OK
      :: v == GONE -> goto left
      :: else -> believed[w] = 0; lose()
      fi }; goto again_
  :: atomic {
      chooseWithRead();
      hold = hold & ~(good | bad | back);
      stopped = stopped & hold;
      running[w] = COUNT((hold & ~stopped)); mine[w] = hold & ~stopped;
      asked = (work && !dueSeen && believed[w] > running[w] -> believed[w] - running[w] : 0);
      keep = (work -> believed[w] : running[w]);
#ifdef NO_LEAVE_BEFORE_PUSH
      /* the token goes out before the permit is given back, and is counted only then */
      if
      :: believed[w] > keep -> e = r.epoch; asked = believed[w] - keep; push(g, asked, e)
      :: else
      fi
    };
    atomic {
      chooseWithRead();
#endif
      settle(w, g, good, bad, back, keep, running[w], false);
      v = verdict; m = rMint;
      freed = permits_;
      if
      :: pick == REPLY_LOST && rMint > 0 -> lost--; m = 0
      :: else
      fi;
      mayRepeat(G_SETTLE, w, g, good, bad, back, keep, running[w], (v == OK && permits_ > 0));
      good = 0; bad = 0; back = 0;
      readNew(w, asked);          /* more than settle reads: also without a permit, and again when repeated */
      if
      :: v != OK ->
        if
        :: v == ENDED -> goto ended
        :: else -> goto left
        fi
      :: else ->
        believed[w] = rPermits; dueSeen = (rDue > 0); holds[w] = (m > 0); e = (m > 0 -> rEpoch : 0);
        laterSeen = rLater;
        if
        :: rPermits < running[w] -> lose()
        :: else -> zombie[w] = 0
        fi;
        if
        :: pick == READ_LOST && rGot != 0 -> lost--; rGot = 0   /* read, and never known here */
        :: else
        fi;
        start();
        if
        :: COUNT(rGot) < asked && !dueSeen -> work = 0
        :: else
        fi;
        if
        :: asked > 0 && pick == READ_REPEATED -> pick = REPEATED; mayRepeat(G_READ, w, asked, 0, 0, 0, 0, 0, 0)
        :: else
        fi
      fi;
      asked = 0; keep = 0
    }
  fi;
  goto again_;

ended:
  if
  DIES_HERE
#ifndef NO_FINISH_BY_WORKER
  :: atomic { choose(); finish(g); mayRepeat(G_FINISH, NO_ONE, g, 0, 0, 0, 0, 0, 0) }
#else
  :: skip
#endif
  fi;
left:
  atomic {
    believed[w] = 0; running[w] = 0; mine[w] = 0; holds[w] = 0; zombie[w] = 0;
    g = 0; e = 0; m = 0; hold = 0; stopped = 0; good = 0; bad = 0; back = 0; v = 0; asked = 0; keep = 0;
    work = 0; dueSeen = 0; laterSeen = 0; touched = 1
  }
  if
  :: !closed[w] -> goto idle
  :: else -> d_step { depart() }
  fi;
over:
  skip
}
