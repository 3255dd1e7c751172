/* The second arrival of the call that repeats.pml noted. */

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
