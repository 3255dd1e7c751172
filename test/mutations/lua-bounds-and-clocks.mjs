/* Cures of the scripts: bounds of one call, and clocks that step. */

const CLOCK = 'test/lua/cures-clock.test.ts';
const BOUNDS = 'test/lua/cures-bounds.test.ts';
const LARGE = 'test/lua/cures-large.test.ts';
const DELAYS = 'test/lua/cures-delays.test.ts';

/** @type {import('./cures.mjs').LuaCure[]} */
export const luaBoundsAndClocks = [
  {
    cure: 'a reader is not believed for longer than 10 s',
    test: CLOCK,
    history:
      'who followed the results before the clock went back by an hour does not follow for an hour',
  },
  {
    cure: 'a lease is not believed beyond its length',
    test: CLOCK,
    history:
      'after the clock went back by an hour, the permits of a dead worker are withdrawn within its lease',
  },
  {
    cure: 'the agenda is shifted when the clock went back',
    test: CLOCK,
    history: 'after the clock went back, the agenda is shifted page by page, and each id once',
  },
  {
    cure: 'no third grace in a row',
    test: CLOCK,
    history: 'when the clock went back and then forward by an hour, no worker loses its lease',
  },
  {
    cure: 'an outage before which the clock went back',
    test: CLOCK,
    history:
      'when Redis was away right after its clock went back, a worker has its whole lease to renew',
  },
  {
    cure: 'an outage before the first tick',
    test: CLOCK,
    history:
      'when Redis was away before the first tick, and again right after it, a producer has its whole lease to renew',
  },
  {
    cure: 'no third grace in a row',
    test: CLOCK,
    history:
      'when Redis was away before the first tick, and again right after it, a producer has its whole lease to renew',
  },
  {
    cure: 'an outage is measured by one clock',
    test: CLOCK,
    history: 'an outage is not confused with the clock of the server that reports it',
  },
  {
    cure: 'a late tend after the clock went back',
    test: CLOCK,
    history: 'a late tend noted before the clock went back delays no withdrawal',
  },
  {
    cure: 'grace for producers after an outage',
    test: CLOCK,
    history: 'a producer gets its whole lease again when Redis is back, and no more',
  },
  {
    cure: 'grace for producers in a late tend',
    test: CLOCK,
    history: 'a tend that was under way while Redis was away gives up no producer',
  },
  {
    cure: 'grace for a lease that is shorter than a gap between two ticks',
    test: CLOCK,
    history: 'a jump of the clock that is longer than a lease gives it one more term',
  },
  {
    cure: 'that grace is given once',
    test: CLOCK,
    history: 'tends that are further apart than a lease lasts prolong it once, not for ever',
  },
  {
    cure: 'a producer lease is not believed beyond its length',
    test: CLOCK,
    history: 'after the clock went back, a producer that is gone is given up within its lease',
  },
  {
    cure: 'a delay is not believed beyond its length',
    test: CLOCK,
    history: 'after the clock went back, a request that was delayed waits no longer than its delay',
  },
  {
    cure: 'an opened id shows how far the clock was',
    test: CLOCK,
    history: 'an id that was opened while the clock was ahead is tended in time',
  },
  {
    cure: 'a delay of nothing has its length too',
    test: CLOCK,
    history: 'after the clock went back, a retry without a delay is ready at once',
  },
  {
    cure: 'a create too old is refused for good',
    test: CLOCK,
    history: 'a create that was refused as too old stays refused after the clock went back',
  },
  {
    cure: 'a hold is not believed beyond its length',
    test: CLOCK,
    history: 'after the clock went back, a hold lasts no longer than it was asked for',
  },
  {
    cure: 'a deadline is not believed beyond its length',
    test: CLOCK,
    history: 'after the clock went back, a deadline is no further away than it was when it was set',
  },
  {
    cure: 'delays are shortened page by page',
    test: CLOCK,
    history:
      'more than 5,000 retries from a time when the clock was ahead are due after their delay',
  },
  {
    cure: 'the delay of a retry is not believed beyond the longest',
    test: CLOCK,
    history:
      'a retry from a time when the clock was ahead waits no longer than its delay once it is right',
  },
  {
    cure: 'a pop that lies ahead counts as now',
    test: CLOCK,
    history:
      'after the clock went back, a token that was popped and lost is found as soon as before',
  },
  {
    cure: 'a sign of life that lies ahead counts as now',
    test: CLOCK,
    history: 'after the clock went back, a dead worker is removed from the registry in time',
  },
  {
    cure: 'the pause of a queue is not believed beyond its length',
    test: CLOCK,
    history: 'after the clock went back, a queue is paused for no longer than it was asked for',
  },
  {
    cure: 'a pause that is asked for again',
    test: CLOCK,
    history: 'after the clock went back, a pause that is asked for again lasts as long as it says',
  },
  {
    cure: 'generations stay near the clock',
    test: CLOCK,
    history:
      'more than a thousand submissions a second do not make generations run ahead of the clock',
  },
  {
    cure: 'the end of a generation makes the next one greater',
    test: CLOCK,
    history: 'the next generation of an id has a greater number, also when many ids share one',
  },
  {
    cure: 'an open generation that has ended is replaced',
    test: CLOCK,
    history: 'an id that a rolled-back queue has open under an ended generation is opened anew',
  },
  {
    cure: 'ends of one call count in their order',
    test: BOUNDS,
    history: 'ends that come in one call count as though each came alone, in their order',
  },
  {
    cure: 'lists that a process does not know are cleared away too',
    test: BOUNDS,
    history: 'the lists of a queue are cleared away by a process that does not know which are used',
  },
  {
    cure: 'the history of a queue is bounded',
    test: BOUNDS,
    history: 'the history of a queue keeps the last thousand ends, and few more',
  },
  {
    cure: 'a tick reports to a worker only the requests parked for it',
    test: BOUNDS,
    history: 'a worker learns of parked requests of its own tasks, and of no others',
  },
  {
    cure: 'parked requests are reported in pages',
    test: BOUNDS,
    history: 'of many parked requests each is named once, at most 100 by one tick',
  },
  {
    cure: 'a parked request is reported once',
    test: BOUNDS,
    history: 'of many parked requests each is named once, at most 100 by one tick',
  },
  {
    cure: 'requests that only wait share one pace of tends',
    test: BOUNDS,
    history: 'of many requests that only wait, fifty are tended a minute',
  },
  {
    cure: 'a parked request is tended after a worker found it',
    test: BOUNDS,
    history: 'a parked request that a worker found is tended a grace later',
  },
  {
    cure: 'one tick passes so many in all',
    test: BOUNDS,
    history:
      'one tick finds at most 500 requests whose tokens were all popped, in all priorities together',
  },
  {
    cure: 'a take is bounded by bytes',
    test: BOUNDS,
    history: 'a take brings about a mebibyte, and says how many others are due',
  },
  {
    cure: 'op number in take',
    test: BOUNDS,
    history: 'a take that arrives twice, or behind a later call, takes nothing more and says so',
  },
  {
    cure: 'a settle reads by bytes',
    test: BOUNDS,
    history: 'a settle reads about a mebibyte, and says that there is more',
  },
  {
    cure: 'an enter reads by bytes',
    test: BOUNDS,
    history: 'an enter reads about a mebibyte of a small request, and says what is left',
  },
  {
    cure: 'a tend takes back so many in all',
    test: BOUNDS,
    history:
      'a tend takes 200 sub-requests back from dead workers; later tends take the others, and count crashes',
  },
  {
    cure: 'a tend finds so many leases ended',
    test: BOUNDS,
    history: 'a tend finds 250 leases that ended; the next one, at once, finds the others',
  },
  {
    cure: 'large keys are unlinked before they expire',
    test: BOUNDS,
    history:
      'what is kept of a request that keeps much is unlinked when its retention is over, not left to expire',
  },
  {
    cure: 'an unlink belongs to its generation',
    test: BOUNDS,
    history: 'a request that was redriven is not unlinked when its old retention is over',
  },
  {
    cure: 'every reply on a completion says what to unlink',
    test: BOUNDS,
    history:
      'a later call that sees the completion also says when the kept data are to be unlinked',
  },
  {
    cure: 'a tend reads thousands of workers in pages',
    test: LARGE,
    history: 'of thousands of dead workers each is found, a page of them by each tend',
  },
  {
    cure: 'the first lease of all pages counts',
    test: LARGE,
    history:
      'thousands of workers are read page by page, and the next tend is when the first lease of all ends',
  },
  {
    cure: 'a crash is one at any page',
    test: LARGE,
    history:
      'each sub-request of a dead one of thousands of workers counts a crash, whichever tend takes it back',
  },
  {
    cure: 'a worker that no field names is found',
    test: LARGE,
    history: 'a worker that owns entries and is named by no field is found among thousands',
  },
  {
    cure: 'the place of a page is forgotten',
    test: LARGE,
    history: 'when most of thousands of workers have left, the others are read at once again',
  },
  {
    cure: 'a redrive clears pages',
    test: LARGE,
    history:
      'what thousands of workers left is removed page by page before the next generation begins',
  },
  {
    cure: 'a large state is unlinked before it expires',
    test: LARGE,
    history:
      'the large state of a request with hundreds of workers is unlinked when its retention is over, not left to expire',
  },
  {
    cure: 'a long lane is not gone through, near its front',
    test: LARGE,
    history: 'tokens whose place is near the front of a long lane go exactly there',
  },
  {
    cure: 'a long lane is in order, near its end',
    test: LARGE,
    history: 'tokens whose place is near the end of a long lane go exactly there',
  },
  {
    cure: 'a long lane is not gone through, far from both ends',
    test: LARGE,
    history:
      'tokens whose place is far from both ends of a long lane go behind it, as far as one call reaches',
  },
  {
    cure: 'a read of results is bounded by bytes',
    test: BOUNDS,
    history: 'a read of results brings about a megabyte, however long the first or a later one is',
  },
  {
    cure: 'a read of long results ends where it was calculated',
    test: BOUNDS,
    history: 'a read of long results ends at the last record of now, or where it was asked to end',
  },
  {
    cure: 'a take of a timed set is bounded by bytes',
    test: BOUNDS,
    history: 'a take of a timed set brings about a mebibyte, and asks for the next take at once',
  },
  {
    cure: 'long keys count in a take of a timed set',
    test: BOUNDS,
    history:
      'a take of a timed set brings about a third of a mebibyte of keys, and all are brought by several',
  },
  {
    cure: 'each key counts in a take of a timed set',
    test: BOUNDS,
    history: 'a take of a timed set brings some hundred keys, however short',
  },
  {
    cure: 'a read of discarded items is bounded by bytes',
    test: BOUNDS,
    history:
      'a read of discarded items brings about a megabyte, and the next one continues behind it',
  },
  {
    cure: 'a delay is believed for its length',
    test: DELAYS,
    history: 'an item put with a delay while the clock was ahead is due after that delay',
  },
  {
    cure: 'no delay is a length',
    test: DELAYS,
    history: 'an item put without a delay while the clock was ahead is taken at once',
  },
  {
    cure: 'the delay of a failure is believed for its length',
    test: DELAYS,
    history: 'an item that failed while the clock was ahead is due after the delay of the failure',
  },
  {
    cure: 'a delay given as a length records the clock',
    test: DELAYS,
    history: 'a take notices that the clock went back, also when nothing was taken meanwhile',
  },
  {
    cure: 'a time of the user is no length',
    test: DELAYS,
    history: 'a time that the user named stays when the clock goes back',
  },
  {
    cure: 'a delay is not shortened by a clock that was ahead meanwhile',
    test: DELAYS,
    history: 'a delay given by the right clock is not shortened when the clock was ahead meanwhile',
  },
  {
    cure: 'a move beside the lease is believed for its length',
    test: DELAYS,
    history: 'an item that was moved by a delay while another had it is due after that delay',
  },
  {
    cure: 'an item that was due is due when it is given back',
    test: DELAYS,
    history: 'an item that is given back after the clock went back is due at once',
  },
  {
    cure: 'a scan of times that lie ahead continues page by page',
    test: DELAYS,
    history:
      'a take that finds more than one call may go through continues with the next call, at once',
  },
];
