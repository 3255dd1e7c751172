/*
 * The protocol of lua/*.lua, for SPIN. Every script is one step, headed by `script: name`; a call is
 * a step, and between two calls of a process everybody else may do anything. `npm run model` runs
 * the configurations and variants of variants.mjs; docs/evidence/model.md says what is left out.
 */
#include "state.pml"
#include "repeats.pml"
#include "books.pml"
#include "queue-side.pml"
#include "compact.pml"
#include "request-side.pml"
#include "repeated.pml"
#include "producer.pml"
#include "worker.pml"
#include "around.pml"
#include "ticker.pml"

init {
  byte k;
  atomic {
#ifdef RETAINED
    /* a life before that has completed just now */
    generations = 1; q.open = 1; q.agenda = 1; r.status = COMPLETE; r.generation = 1;
#endif
#ifdef SUBMITTED
    /* what submits is gone into elsewhere: here all of it went well before anybody else came */
    intent(); create(1, 1);
#if defined(HELD) && !defined(NO_HELD_SUBMIT)
    r.heldUntil = LATER;          /* so no token is minted */
#endif
#ifdef DEADLINE
    r.deadline = LATER;
#endif
    for (k : 0 .. N - 1) { append(1, k); m_ = rMint; push(1, m_, rEpoch) }
    seal(1, N); sealed[0] = 1; producerGone[0] = 1; producerGone[1] = 1;
#ifdef HELD
    r.heldUntil = LATER;
#endif
#ifdef COMPACT
    r.compact = 1;
#endif
#else
    run Producer(0);
    if :: PRODUCERS > 1 -> run Producer(1) :: else -> producerGone[1] = 1 fi;
#endif
    run Worker(0);
    if :: W > 1 -> run Worker(1) :: else fi;
    if :: TICKERS > 0 -> run Ticker(0) :: else fi;
    if :: TICKERS > 1 -> run Ticker(1) :: else fi
  }
}
