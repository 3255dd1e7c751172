/* Submits N sub-requests one by one: intent, create, append and push, seal. May die before any step. */

#define DIES :: atomic { producerDies > 0 -> producerDies--; producerGone[who] = 1; touched = 1 }; goto gone

inline callIntent() {
  intent(); g = rGeneration
}

proctype Producer(byte who) {
  byte g, m, e, n, v, tries, found;
again_:
  if
  DIES
#ifdef NO_INTENT_FIRST
  /* what create needs is a number; the id is opened afterwards */
  :: d_step { generations++; g = generations; rGeneration = g }
#else
  :: atomic { choose(); callIntent(); mayRepeat(G_INTENT, NO_ONE, 0, 0, 0, 0, 0, 0, 0) }
#endif
  fi;
  if
  DIES
  :: atomic {
      choose();
      create(g, who + 1); v = verdict; found = rGeneration; mayRepeat(G_CREATE, NO_ONE, g, who + 1, 0, 0, 0, 0, 0)
    }
  fi;
#ifdef NO_INTENT_FIRST
  if
  DIES
  :: d_step { v == OK -> reopen(g) }
  :: v != OK
  fi;
#endif
  if
  :: v == OK
  :: v != OK ->
    /* refused, or given up before it was used */
    if
    DIES
    :: atomic { (v == VOIDED || found != g) -> choose(); finish(g); mayRepeat(G_FINISH, NO_ONE, g, 0, 0, 0, 0, 0, 0) }
    :: v == EXISTS && found == g   /* the life of another submitter under the same generation */
    fi;
    if
    :: v == VOIDED && tries < 3 -> tries++; goto again_
    :: else -> goto gone
    fi
  fi;
  do
  :: n < N ->
    if
    DIES
    :: atomic {
        choose();
        append(g, n); v = verdict; m = rMint; e = rEpoch; holdsP[who] = (m > 0);
        mayRepeat(G_APPEND, NO_ONE, g, n, 0, 0, 0, 0, 0)
      }
    /* the renewal of its lease, which any call is as well */
    :: d_step { r.producerOver && LIVES(g) && r.status == OPEN -> renewProducer(g) }; v = OK; n--; m = 0
    fi;
    if
    :: v != OK -> holdsP[who] = 0; goto gone
    :: else -> n++
    fi;
    if
    :: m > 0 ->
      if
      DIES
      :: atomic { choose(); push(g, m, e); holdsP[who] = 0; mayRepeat(G_PUSH, NO_ONE, g, m, e, 0, 0, 0, 0); m = 0 }
      fi
    :: else
    fi
  :: else -> break
  od;
  if
  DIES
  :: atomic { choose(); seal(g, N); v = verdict; mayRepeat(G_SEAL, NO_ONE, g, N, 0, 0, 0, 0, 0); sealed[who] = (v == OK || v == ENDED) }
  fi;
  if
  DIES
  :: atomic { v == ENDED -> choose(); finish(g); mayRepeat(G_FINISH, NO_ONE, g, 0, 0, 0, 0, 0, 0) }
  :: v != ENDED
  fi;
gone:
  atomic { holdsP[who] = 0; producerGone[who] = 1; touched = 1 }
}
