/*
 * One call that arrives a second time: at once, as when a client library sends it again, or late.
 * It is the same call with the same arguments; the caller went on with the first reply.
 */
#define G_INTENT 1
#define G_CREATE 2
#define G_APPEND 3
#define G_PUSH 4
#define G_SEAL 5
#define G_ENTER 6
#define G_SETTLE 7
#define G_READ 8
#define G_TAKE 9
#define G_TEND 10
#define G_WRITE_BACK 11
#define G_FINISH 12
#define G_CANCEL 13
#define G_PARK 14
#define NO_ONE 9

byte gKind; byte gWho = NO_ONE; byte ga, gb, gc, gd, ge, gf;
bit endedNow[W];
bit ranAlone[N + 1];
byte delivered[N + 1];
bit subscribed, notice;
hidden int before_;

inline forgetRepeat() {
  gKind = 0; gWho = NO_ONE; ga = 0; gb = 0; gc = 0; gd = 0; ge = 0; gf = 0; r.known = 0
}

/* After a call: it may come again. */
inline mayRepeat(what, from, p1, p2, p3, p4, p5, p6, isKnown) {
  if
  :: again > 0 && gKind == 0 ->
    again--; gKind = what; gWho = from; ga = p1; gb = p2; gc = p3; gd = p4; ge = p5; gf = p6; r.known = isKnown
  :: true
  fi
}

#define LATE_NOW (r.op[gWho % W] != 0 && r.known)
/* What a repeat of a worker's call may not change: permits, tokens counted, tries, outcomes. */
#define BOOKED (r.granted + 4 * r.tries[0] + 16 * r.tries[1] + 64 * (r.failed + r.cancelled) + 256 * (r.out + r.outBefore))

#if AGAIN > 0
active proctype Repeats() {
end:
  do
  :: d_step { gKind == G_INTENT -> intent(); forgetRepeat() }
  :: d_step { gKind == G_CREATE -> create(ga, gb); forgetRepeat() }
  :: d_step { gKind == G_APPEND -> append(ga, gb); forgetRepeat() }
  :: d_step { gKind == G_PUSH -> push(ga, gb, gc); forgetRepeat() }
  :: d_step { gKind == G_SEAL -> seal(ga, gb); forgetRepeat() }
  :: d_step { gKind == G_ENTER ->
      before_ = BOOKED;
      enter(gWho, ga, gb, gc, gd, LATE_NOW);
      assert(verdict == ENDED || verdict == GONE || BOOKED == before_);
      forgetRepeat() }
  :: d_step { gKind == G_SETTLE ->
      before_ = (LATE_NOW -> BOOKED : -1);
      settle(gWho, ga, gb, gc, gd, ge, gf, LATE_NOW);
      assert(verdict == ENDED || verdict == GONE || before_ == -1 || BOOKED == before_);
      forgetRepeat() }
  :: d_step { gKind == G_READ -> readNew(gWho, ga); forgetRepeat() }
  :: d_step { gKind == G_TAKE -> take(gWho, ga, gb); forgetRepeat() }
  :: d_step { gKind == G_TEND -> tend(ga, gb); forgetRepeat() }
  :: atomic { gKind == G_WRITE_BACK -> writeBack(ga, gb, gc, gd, ge, (gf & 1), (gf >> 1)); forgetRepeat() }
  :: d_step { gKind == G_FINISH -> finish(ga); forgetRepeat() }
  :: d_step { gKind == G_CANCEL -> cancel(ga); forgetRepeat() }
  :: d_step { gKind == G_PARK -> rLater = 0; parkTask(ga); forgetRepeat() }
  od
}
#endif
