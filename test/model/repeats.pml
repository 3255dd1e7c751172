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

/*
 * What will go wrong with a call is chosen before it is made: replies are hidden, and nothing hidden
 * outlives a choice, as the checker does not bring it back when it tries the other one.
 */
#define REPEATED 1
#define REPLY_LOST 2
#define READ_REPEATED 3
#define READ_LOST 4

inline choose() {
  if
  :: pick = 0
  :: again > 0 && gKind == 0 -> pick = REPEATED
  :: lost > 0 -> pick = REPLY_LOST
  fi
}

inline chooseWithRead() {
  if
  :: pick = 0
  :: again > 0 && gKind == 0 -> pick = REPEATED
  :: again > 0 && gKind == 0 -> pick = READ_REPEATED
  :: lost > 0 -> pick = REPLY_LOST
  :: lost > 0 -> pick = READ_LOST
  fi
}

/* After a call: it may come again. */
inline mayRepeat(what, from, p1, p2, p3, p4, p5, p6, isKnown) {
  if
  :: pick == REPEATED ->
    again--; gKind = what; gWho = from; ga = p1; gb = p2; gc = p3; gd = p4; ge = p5; gf = p6; r.known = isKnown
  :: else
  fi
}

#define LATE_NOW (r.op[gWho % W] != 0 && r.known)
/* What a repeat of a worker's call may not change: permits, tokens counted, tries, outcomes. */
#define BOOKED (r.granted + 4 * r.tries[0] + 16 * r.tries[1] + 64 * (r.failed + r.cancelled) + 256 * (r.out + r.outBefore))
