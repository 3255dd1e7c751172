/*
 * What both sides keep, as the model sees it: one queue, one list, one id with its lives.
 * `hidden` are scratch variables and replies: set and used within one step, so no part of a state.
 */

/* Configuration: how many of everything, and how many faults of each kind (variants.mjs sets them). */
#ifndef N
#define N 2                       /* sub-requests */
#endif
#ifndef LIMIT
#define LIMIT 1
#endif
#ifndef W
#define W 2                       /* worker processes */
#endif
#ifndef SLOTS
#define SLOTS 1                   /* of each worker */
#endif
#ifndef TICKERS
#define TICKERS 1
#endif
#ifndef PRODUCERS
#define PRODUCERS 1
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 1
#endif
#ifndef MAX_CRASHES
#define MAX_CRASHES 9
#endif
#ifndef DIE
#define DIE 0                     /* workers that die, at any step */
#endif
#ifndef PRODUCER_DIES
#define PRODUCER_DIES 0
#endif
#ifndef TICKER_DIES
#define TICKER_DIES 0
#endif
#ifndef EAT
#define EAT 0                     /* tokens popped by nobody */
#endif
#ifndef ZOMBIE
#define ZOMBIE 0                  /* leases that end while their worker lives */
#endif
#ifndef AGAIN
#define AGAIN 0                   /* calls that arrive a second time, at once or late */
#endif
#ifndef LOST
#define LOST 0                    /* replies lost: the call is repeated, what the first answered is lost */
#endif
#ifndef FAIL
#define FAIL 0                    /* handlers that fail */
#endif
#ifndef CLOSE
#define CLOSE 0                   /* workers that close: they give back what they run */
#endif
#ifndef YIELD
#define YIELD 0                   /* time slices that end */
#endif
#ifndef CANCEL
#define CANCEL 0
#endif
#ifndef DROP
#define DROP 0
#endif
#ifndef SLOW
#define SLOW 0                    /* a grace that is over before a token was entered or pushed */
#endif
#ifndef LATE
#define LATE 0                    /* an intent looked at, or a producer's lease over, while it lives */
#endif
#ifndef EXPIRE
#define EXPIRE 0                  /* ends of retention */
#endif
#ifndef ROLLBACK_QUEUE
#define ROLLBACK_QUEUE 0
#endif
#ifndef ROLLBACK_REQUEST
#define ROLLBACK_REQUEST 0
#endif
#ifndef NOTICES_LOST
#define NOTICES_LOST 0
#endif
#ifndef CUTS
#define CUTS 0                    /* of the notifier's connection */
#endif

#define NOBODY 0                  /* status of a request */
#define OPEN 1
#define SEALED 2
#define CANCELLING 3
#define COMPLETE 4
#define VOID 5
#define DROPPED 6

#define UNREAD 1                  /* of a sub-request in the stream; 0: not appended */
#define PENDING 2
#define SETTLED 3
#define VANISHED 4                /* its consumer was deleted with it */
#define PARKER W                  /* the reserved consumer '~' */

#define NOW 1                     /* in `due`, of `heldUntil` and `deadline`; 0: not in it, none */
#define LATER 2

#define LISTED 10                 /* room in the list */
#define EPOCHS 16                 /* a token: generation * EPOCHS + epoch */

/* Queue side, {queue} */
typedef Queue {
  byte open;                      /* generation under which the id is open; 0: it is not */
  byte agenda;                    /* 0: not in it; 1: at some time; 2 + t: claimed by ticker t */
  bit waits;                      /* in `wait` … */
  byte ahead;                     /* … until so many tokens are popped */
  byte mark;                      /* epoch; 0: none */
  byte passed;                    /* 0: not yet; 1: popped beyond the mark; 2: a grace ago */
  byte tokens;
  byte list[LISTED];
  bit parked;
  byte finished;                  /* generation last counted as ended */
}
Queue q;
byte tooOld;                      /* generations up to this one are older than the create window */
byte generations;                 /* the server's time: it never comes back older */

/* Request side, {id} */
typedef Request {
  byte status; byte generation; byte voided; byte owner;
  byte total; byte succeeded; byte failed; byte cancelled;
  byte granted; byte out; byte outBefore; byte epoch;
  bit parked; bit producerOver;
  bit compact;                    /* one string: see compact.pml */
  byte heldUntil; byte deadline;  /* 0: none; LATER, then NOW */
  byte permits[W]; byte lease[W]; /* lease: 0 none, 1 lasts, 2 over */
  byte op[W];                     /* 0: struck out; 1: number kept; 2: kept, seen by one look */
  byte entry[N + 1]; byte owned[N + 1]; byte due[N + 1];
  byte tries[N + 1]; byte crashes[N + 1]; byte alone[N + 1];
  byte outcomes[N + 1];           /* not in Redis: how often each was counted */
  bit known;                      /* not in Redis: the op of the repeated call was recorded, or a later one */
}
Request r;

#define LIVES(g) (r.generation == g && (r.status == OPEN || r.status == SEALED || r.status == CANCELLING || r.status == COMPLETE))
#define LIVING (r.status == OPEN || r.status == SEALED || r.status == CANCELLING)

/* Processes, as others have to see them */
bit dead[W]; bit closed[W];
byte believed[W];                 /* permits that the worker thinks it holds */
byte running[W];                  /* handlers that run, those told to stop not counted */
byte mine[W];                     /* … and which they are */
bit zombie[W];                    /* its lease was withdrawn and it does not know yet */
bit holds[W];                     /* a popped token not entered, or a minted one not pushed */
bit holdsT[TICKERS + 1];
byte ran[N + 1];                  /* failures of handlers */
bit producerGone[2]; bit holdsP[2]; bit sealed[2];
bit oldDelay;
bit notified; bit calm;
/* Something changed since the last claim. A look at what did not change would change nothing: left out. */
bit touched = 1;

byte die = DIE; byte producerDies = PRODUCER_DIES; byte tickerDies = TICKER_DIES; byte eat = EAT;
byte zombies = ZOMBIE; byte again = AGAIN; byte lost = LOST; byte fails = FAIL; byte closes = CLOSE;
byte yields = YIELD; byte slow = SLOW; byte late_ = LATE; byte expire = EXPIRE;
byte rollQ = ROLLBACK_QUEUE; byte rollR = ROLLBACK_REQUEST; byte noticesLost = NOTICES_LOST; byte cuts = CUTS;

/* Replies and scratch */
#define OK 0
#define GONE 1
#define ENDED 2
#define UNSERVED_ 3
#define EXISTS 4
#define VOIDED 5
#define REFUSED 6
#define GAP 7
hidden byte pick, verdict, rPermits, rMint, rDue, rGot, rGeneration, rBefore, rNext, rParked, rEpoch;
hidden byte rLater;
hidden int i_, j_, x_, y_;
hidden int pend, held, dueNow, unread, ready, inFlight, want_, out_;
hidden byte gave, changed, isEnded;
hidden byte freed, permits_, m_;
