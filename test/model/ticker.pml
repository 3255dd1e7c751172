/* Whoever ticks: claims what is due, tends it, writes back or finishes. May die between two calls. */

#ifdef TICKS_AT_LEASES
#define LOOK_NOW (q.agenda != 0 && touched && ENDED_LEASE)
#else
#define LOOK_NOW ((q.waits && q.ahead == 0) || (q.agenda != 0 && (touched || q.open == 0)))
#endif
#define TICKER_DIES_HERE :: atomic { tickerDies > 0 -> tickerDies--; holdsT[t] = 0; touched = 1 }; goto look

proctype Ticker(byte t) {
  byte g, passed, m, e, before; bit next, isParked; byte v;
look:
  atomic { g = 0; passed = 0; m = 0; e = 0; before = 0; next = 0; isParked = 0; v = 0 }
  atomic {
    LOOK_NOW ->
    if :: rLater = 0 :: q.agenda > 1 -> rLater = 1 fi;
    tick(t); g = rGeneration; passed = rBefore
  }
  if
  :: g == 0 -> goto look
  :: else
  fi;
  /* An intent is looked at 20 s later: what lives longer than that without a create is a fault of its own. */
  if
  TICKER_DIES_HERE
  :: atomic {
      (LIVES(g) || producerGone[0] && (PRODUCERS == 1 || producerGone[1]) || late_ > 0 || r.generation > g || r.status == DROPPED) ->
      if
      :: !LIVES(g) && !(producerGone[0] && (PRODUCERS == 1 || producerGone[1])) && late_ > 0 -> late_--
      :: else
      fi;
      choose();
      tend(g, passed);
      v = verdict; m = rMint; e = rEpoch; before = rBefore; next = rNext; isParked = rParked;
      mayRepeat(G_TEND, NO_ONE, g, passed, 0, 0, 0, 0, 0);
      if
      :: pick == REPLY_LOST && m > 0 -> lost--; m = 0
      :: else
      fi;
      holdsT[t] = (m > 0); passed = 0;
      if
      :: m == 0 -> e = 0
      :: else
      fi
    }
  fi;
  if
  TICKER_DIES_HERE
  :: atomic { v == OK ->
#ifdef NO_PARKED_TOLD
      isParked = 0;
#endif
      choose();
      writeBack(t, g, m, e, before, next, isParked); holdsT[t] = 0;
      mayRepeat(G_WRITE_BACK, NO_ONE, t, g, m, e, before, next + 2 * isParked, 0) }
  :: atomic { v != OK -> choose(); finish(g); mayRepeat(G_FINISH, NO_ONE, g, 0, 0, 0, 0, 0, 0) }
  fi;
  goto look
}
