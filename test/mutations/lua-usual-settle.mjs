/* Cures of the scripts: when a settle is not usual (lua/lib/usual.lua), and how a request is stored. */

const USUAL = 'test/lua/cures-usual.test.ts';
const SMALL = 'test/lua/cures-small.test.ts';
const COMPACT = 'test/lua/cures-compact.test.ts';

/** @type {import('./cures.mjs').LuaCure[]} */
export const luaUsualSettle = [
  {
    cure: 'successes that are not acknowledged are looked into',
    test: USUAL,
    history: 'successes that were not all pending are not recorded again',
  },
  {
    cure: 'failures and returns are not usual',
    test: USUAL,
    history: 'a failure and a return beside successes count',
  },
  {
    cure: 'permits that are given up are not usual',
    test: USUAL,
    history: 'permits that the worker gives up with its successes are gone',
  },
  {
    cure: 'a halted request is not usual',
    test: USUAL,
    history: 'a success of a paused request takes its permit with it',
  },
  {
    cure: 'a pinned request is not usual',
    test: USUAL,
    history: 'a success of a pinned request is deleted',
  },
  {
    cure: 'checkpoints are not usual',
    test: USUAL,
    history: 'the checkpoint of a success is deleted',
  },
  {
    cure: 'what completes a request is not usual',
    test: USUAL,
    history: 'the last successes complete the request, though the worker would keep its permits',
  },
  {
    cure: 'a long record is not usual',
    test: USUAL,
    history: 'the length of a long record is stored',
  },
  {
    cure: 'what waits or was reported is not usual',
    test: USUAL,
    history: 'what a handler reported goes with its success',
  },
  {
    cure: 'the state of a large request is a table',
    test: USUAL,
    history:
      'the state of a large request is a table, in which no field costs a look at all others',
  },
  {
    cure: 'an entry that no worker owns is not running',
    test: SMALL,
    history: 'what was returned is with no worker',
  },
  {
    cure: 'what is compact may be with a worker, in a stream',
    test: SMALL,
    history: 'what was read as a whole is renewed, with checkpoints',
  },
  {
    cure: 'the only record is read once',
    test: SMALL,
    history: 'the results of a small request are read from any place',
  },
  {
    cure: 'the only record is not read before its place',
    test: SMALL,
    history: 'the results of a small request are not read beyond the end of a reader',
  },
  {
    cure: 'a new request has no results',
    test: SMALL,
    history: 'an id whose state was deleted by hand begins anew',
  },
  {
    cure: 'a redriven request has a stream of results',
    test: COMPACT,
    history: 'its results are in it, until it is redriven',
  },
  {
    cure: 'what is compact may be with a worker',
    test: COMPACT,
    history: 'one worker reads and settles all, and it stays compact',
  },
  {
    cure: 'a compact request has one worker',
    test: COMPACT,
    history: 'a second worker gets nothing of what the first has',
  },
  {
    cure: 'a compact request is for workers that serve its task',
    test: COMPACT,
    history: 'a worker that does not serve its task leaves it to others',
  },
  {
    cure: 'tokens of an old priority die, of a compact request',
    test: COMPACT,
    history: 'a token that was given up brings no permits',
  },
  {
    cure: 'of a compact request all is read',
    test: COMPACT,
    history: 'who may read a part only gets no more than that',
  },
  {
    cure: 'a compact request is settled by the worker that has it',
    test: COMPACT,
    history: 'another worker settles nothing of it',
  },
  {
    cure: 'a compact request is settled as a whole',
    test: COMPACT,
    history: 'a part of it is settled as of any request',
  },
  {
    cure: 'a long record is not usual, of a compact request',
    test: COMPACT,
    history: 'long results are not in it, and say how long they are',
  },
  {
    cure: 'a generation is remembered until its create is too old, of a compact request',
    test: COMPACT,
    history: 'a generation is remembered for as long as it may be created',
  },
  {
    cure: 'a tend expands what a worker has',
    test: COMPACT,
    history: 'what a dead worker had is taken back, and each counts a crash',
  },
  {
    cure: 'the deadline of a compact request ends it',
    test: COMPACT,
    history: 'one that has a deadline ends at it',
  },
  {
    cure: 'a compact request that is held has no token',
    test: COMPACT,
    history: 'one that is held gets its token when its time has come',
  },
  {
    cure: 'a delay is not believed beyond its length, of a compact request',
    test: COMPACT,
    history: 'one that is held begins after its delay, also where the clock has gone back',
  },
  {
    cure: 'a deadline is not believed beyond its length, of a compact request',
    test: COMPACT,
    history: 'one that has a deadline ends after its length, also where the clock has gone back',
  },
  {
    cure: 'where few crashes are allowed a request is not compact',
    test: COMPACT,
    history: 'where two crashes fail it, no more is read ahead than there are permits',
  },
  {
    cure: 'what separates payloads is in none of them',
    test: COMPACT,
    history: 'a payload with the separator of replies is read as it was written',
  },
  {
    cure: 'a compact request that is complete expires in any form',
    test: COMPACT,
    history: 'one that is complete expires whatever form it gets',
  },
  {
    cure: 'each sub-request of a compact request ends once',
    test: SMALL,
    history: 'of what was read as a whole, only what is there counts as settled',
  },
  {
    cure: 'who may try again is no end of a compact request',
    test: COMPACT,
    history: 'what fails is tried again where it has attempts left',
  },
  {
    cure: 'a compact request that is held again is not entered',
    test: COMPACT,
    history: 'one that the clock holds again is not entered',
  },
  {
    cure: 'the lease of a compact request is of the worker that has it',
    test: COMPACT,
    history: 'a worker that has nothing of it renews nothing',
  },
  {
    cure: 'a compact request is kept for no longer than it was meant',
    test: COMPACT,
    history: 'one that is complete is kept for no longer when the clock has gone back',
  },
];
