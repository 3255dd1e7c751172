/* Cures of the scripts: control, redrives, suspects, lost writes, and what no history of traces-*.test.ts shows. */

const CURES = 'test/lua/cures.test.ts';
const LOST_WRITES = 'test/lua/cures-lost-writes.test.ts';
const CONTROL = 'test/lua/cures-control.test.ts';
const REDRIVE = 'test/lua/cures-redrive.test.ts';
const SUSPECTS = 'test/lua/cures-suspects.test.ts';
const AHEAD = 'test/lua/cures-ahead.test.ts';
const LOST = 'test/lua/cures-lost.test.ts';
const NOTIFY = 'test/lua/cures-notify.test.ts';

const LIVES = 'test/lua/cures-lives.test.ts';

/** @type {import('./cures.mjs').LuaCure[]} */
export const luaControlAndLosses = [
  {
    cure: 'results of another life of the id are not read',
    test: LIVES,
    history:
      'results are those of the life of which their reader knows, or of any if it knows none',
  },
  {
    cure: 'a redriven request knows its first generation',
    test: LIVES,
    history: 'a redrive continues the life of the generations before',
  },
  {
    cure: 'long results of another life of the id are not read',
    test: LIVES,
    history: 'long results are read from the first generation of their life on',
  },
  {
    cure: 'results that expire soon are read',
    test: NOTIFY,
    history: 'results that expire within a minute are not in the message',
  },
  {
    cure: 'a message brings no record of a failure',
    test: NOTIFY,
    history: 'of a request that was redriven the results are read, with what failed before',
  },
  {
    cure: 'whoever submitted a request learns that it was dropped',
    test: NOTIFY,
    history: 'who submitted a request hears that it was dropped',
  },
  {
    cure: 'XACK-gated counting, of a part of a batch',
    test: CURES,
    history: 'when others settled a part of a batch, the rest counts, with its results',
  },
  {
    cure: 'XACK-gated counting, all together',
    test: CURES,
    history: 'of successes that are acknowledged together only those count that were pending',
  },
  {
    cure: 'no success together once one was contested',
    test: CURES,
    history: 'a success of a zombie is not recorded again by a worker that reports it with others',
  },
  {
    cure: 'number of the grant',
    test: CURES,
    history: 'a worker with new permits is asked for each entry of its former grant',
  },
  {
    cure: 'lost writes noticed by a settle',
    test: LOST_WRITES,
    history: 'a settle that follows one that the server lost has each of its successes asked for',
  },
  {
    cure: 'lost writes noticed by an enter',
    test: LOST_WRITES,
    history: 'an enter that follows a settle that the server lost has each success asked for',
  },
  {
    cure: 'lost writes noticed by a take',
    test: LOST_WRITES,
    history: 'a take that follows a settle that the server lost has each success asked for',
  },
  {
    cure: 'number of a take',
    test: LOST_WRITES,
    history:
      'a settle that follows a take that the server lost has each of its successes asked for',
  },
  {
    cure: 'lost writes are noticed only under permits',
    test: LOST_WRITES,
    history: 'a worker that owns nothing is believed as before when its number was forgotten',
  },
  {
    cure: 'outcomes that others recorded are not recorded together',
    test: LOST_WRITES,
    history: 'what a worker of an older version recorded is not recorded again with others',
  },
  {
    cure: 'outcomes that the first run recorded are not recorded together',
    test: LOST_WRITES,
    history:
      'a worker that succeeds twice, with an entry that it lost and took again, is recorded once',
  },
  {
    cure: 'who never read an entry does not settle it',
    test: LOST_WRITES,
    history:
      'a success of an item that the server lost does not count for the item that has its index',
  },
  {
    cure: 'the checkpoint of another item stays',
    test: LOST_WRITES,
    history: 'a success that does not count leaves the checkpoint of who runs the entry',
  },
  {
    cure: 'an entry that is unread again is not deleted',
    test: LOST_WRITES,
    history:
      'an entry that is reported and unread again is delivered again, also behind a straggler',
  },
  {
    cure: 'explicit ids',
    test: CURES,
    history:
      'the entry of a sub-request names its generation and index, whoever appended it and how often',
  },
  {
    cure: 'absolute keep in settle',
    test: CURES,
    history: 'a settle that arrives twice frees its permits once, also without its number',
  },
  {
    cure: 'top-up in append',
    test: CURES,
    history: 'an item appended to a request that nobody works on gets a token',
  },
  {
    cure: 'top-up in retry',
    test: CURES,
    history: 'a retry of a worker without a permit gets a token',
  },
  {
    cure: 'top-up in retry, when it is due',
    test: CURES,
    history: 'a delayed retry gets a token by the tend at which it is due',
  },
  {
    cure: 'top-up in give-back',
    test: CURES,
    history: 'a sub-request returned by a worker without a permit gets a token',
  },
  {
    cure: 'top-up in reclaim',
    test: CURES,
    history: 'a sub-request that is reclaimed from a dead worker gets a token by the same tend',
  },
  {
    cure: 'partial loss',
    test: CURES,
    history: 'one lost token of ten is missed while nine workers stay busy',
  },
  {
    cure: 'a lane in due order',
    test: CURES,
    history: 'the request that was due first is popped first, whichever tokens were minted first',
  },
  {
    cure: 'tokens lost from a lane',
    test: CURES,
    history: 'a token that is lost from a lane is missed while another one waits there',
  },
  {
    cure: 'tokens lost before their lane was known',
    test: CURES,
    history:
      'a token that never reached its lane is missed by a worker that does not know the lane',
  },
  {
    cure: 'attempts counted apart from deliveries',
    test: CURES,
    history: 'a sub-request that was delivered often and failed once is tried again',
  },
  {
    cure: 'completion state before publish',
    test: CURES,
    history: 'a request completes although no notice could be published',
  },
  {
    cure: 'producer lease',
    test: CURES,
    history: 'a request whose producer died without a seal is sealed, and ends',
  },
  {
    cure: 'producer lease, renewed by calls',
    test: CURES,
    history: 'a request whose producer gives a sign of life stays open',
  },
  {
    cure: 'a paused request grants, mints and hands out nothing',
    test: CONTROL,
    history:
      'a paused request grants, mints and hands out nothing, and keeps no permits but of running handlers',
  },
  { cure: 'top-up in resume', test: CONTROL, history: 'a resumed request has its tokens at once' },
  { cure: 'a resume does not end a hold', test: CONTROL, history: 'a resume does not end a hold' },
  { cure: 'top-up in update', test: CONTROL, history: 'a raised limit brings others at once' },
  {
    cure: 'permits above a lowered limit are taken back',
    test: CONTROL,
    history: 'a worker above a lowered limit gives up a permit with each handler that ends',
  },
  {
    cure: 'tokens of an old priority die',
    test: CONTROL,
    history: 'tokens in the list of an old priority are void, and there are new ones at once',
  },
  {
    cure: 'a change of the priority is made once',
    test: CONTROL,
    history: 'a change of the priority that is sent twice makes one step',
  },
  {
    cure: 'a hold is never made shorter',
    test: CONTROL,
    history: 'a second hold, or a second pause of the queue, does not shorten the first',
  },
  {
    cure: 'the end of a hold is on the agenda',
    test: CONTROL,
    history: 'a held request is tended when the hold ends, also when no call scheduled that',
  },
  {
    cure: 'the deadline is on the agenda',
    test: CONTROL,
    history: 'a request fails at its deadline, whatever is left, also when no call scheduled that',
  },
  {
    cure: 'the first reason of an early end stays',
    test: CONTROL,
    history: 'the first reason to end a request early is kept',
  },
  {
    cure: 'too many failures end it in settle',
    test: CONTROL,
    history: 'a request with too many failures ends at once, with all that waits or was returned',
  },
  {
    cure: 'too many failures end it in tend',
    test: CONTROL,
    history: 'one crash too many ends such a request as well',
  },
  {
    cure: 'a share of failures waits for the seal',
    test: CONTROL,
    history: 'a tolerated share of failures is judged only when all sub-requests are there',
  },
  {
    cure: 'no further attempt when there is to be none',
    test: CONTROL,
    history: 'a failure that must not be tried again is final, whatever attempts are left',
  },
  {
    cure: 'a checkpoint counts from its owner only',
    test: CONTROL,
    history: 'a worker that lost a sub-request does not overwrite the checkpoint of the new owner',
  },
  {
    cure: 'a checkpoint goes with its success',
    test: CONTROL,
    history: 'the checkpoint of a sub-request is removed when it succeeds',
  },
  {
    cure: 'records rise while a redrive moves',
    test: REDRIVE,
    history: 'a sub-request that is settled while a redrive moves others keeps its result',
  },
  {
    cure: 'records of crashes rise while a redrive moves',
    test: REDRIVE,
    history: 'a sub-request that fails by a crash while a redrive moves others is recorded as well',
  },
  {
    cure: 'a failure moves once',
    test: REDRIVE,
    history: 'a sub-request that failed anew in this generation is not moved again by a late call',
  },
  {
    cure: 'a moved failure is not counted as failed',
    test: REDRIVE,
    history: 'a sub-request that runs again does not count as failed',
  },
  {
    cure: 'a redrive belongs to its owner',
    test: REDRIVE,
    history: 'another redrive of the same generation moves nothing and opens nothing',
  },
  {
    cure: 'only a complete request is redriven',
    test: REDRIVE,
    history: 'a generation that is not complete is not redriven',
  },
  {
    cure: 'a refused redrive is refused for good',
    test: REDRIVE,
    history: 'a redrive that was refused cannot be carried out later, when nobody tends it',
  },
  {
    cure: 'a redrive of nothing opens nothing',
    test: REDRIVE,
    history: 'a redrive of failures that are there no more opens nothing',
  },
  {
    cure: 'a redrive of nothing is given up for good',
    test: REDRIVE,
    history:
      'a redrive of nothing is given up, so nobody opens that generation when nobody tends it',
  },
  {
    cure: 'a redriven request takes no new items',
    test: REDRIVE,
    history: 'a generation that is open for a redrive takes no new items',
  },
  {
    cure: 'permits end with their generation',
    test: REDRIVE,
    history: 'a worker that had a permit when its generation ended has none in the next one',
  },
  {
    cure: 'a redriven request is kept',
    test: REDRIVE,
    history:
      'what a redriven request needs does not expire with the retention of the generation before',
  },
  {
    cure: 'a lost redrive is sealed',
    test: REDRIVE,
    history:
      'a redrive whose process ended is sealed at the end of its lease: what was moved completes it',
  },
  {
    cure: 'what an earlier generation cancelled stays cancelled',
    test: REDRIVE,
    history: 'a redrive does not turn a cancelled request into a successful one',
  },
  {
    cure: 'no suspect fails by a crash in company',
    test: SUSPECTS,
    history: 'suspects that crash in company never fail by it, however often',
  },
  {
    cure: 'company of another request is company',
    test: SUSPECTS,
    history: 'a suspect that runs beside those of another request does not run alone',
  },
  {
    cure: 'the company of a crash is remembered',
    test: SUSPECTS,
    history:
      'a worker that takes a suspect learns in what company it crashed, and makes it smaller',
  },
  {
    cure: 'the lease of a dead process ends',
    test: SUSPECTS,
    history: 'a worker that is known to be dead has no permit any more',
  },
  {
    cure: 'a cause counts until the next renewal',
    test: SUSPECTS,
    history: 'a cause after which a worker renewed its lease is not the cause of its end',
  },
  {
    cure: 'a lease that is given its term again is not renewed',
    test: SUSPECTS,
    history: 'a cause counts, though the lease got its term again after a gap between two ticks',
  },
  {
    cure: 'an existing request takes the place of the intent that it refused',
    test: LOST,
    history:
      'an unfinished request takes the place of a later intent that it refused, and of no other',
  },
  {
    cure: 'an exchange says that nothing was returned',
    test: LOST,
    history:
      'a worker that returns tokens of a closed request learns that it is closed, and takes others all the same',
  },
  {
    cure: 'nothing is read ahead of a paused request',
    test: AHEAD,
    history: 'of a paused request nothing is read ahead, and what was is to go back',
  },
  {
    cure: 'an enter reads ahead only under the whole limit',
    test: AHEAD,
    history:
      'an enter reads ahead for a worker that has all that the limit allows, and for no other',
  },
  {
    cure: 'with few crashes allowed only one worker reads ahead',
    test: AHEAD,
    history:
      'an enter for short handlers reads ahead where three crashes fail a sub-request, and not where two do',
  },
  {
    cure: 'an enter reads ahead only to the end',
    test: AHEAD,
    history: 'an enter reads ahead of a request that it can read to the end, and of no other',
  },
  {
    cure: 'a settle without permits reads nothing',
    test: AHEAD,
    history: 'a worker whose permits were withdrawn reads nothing ahead',
  },
  {
    cure: 'nothing is read ahead above a lowered limit',
    test: AHEAD,
    history: 'above a lowered limit nothing is read ahead, and what was is to go back',
  },
  {
    cure: 'nothing is read ahead where the first crash is final',
    test: AHEAD,
    history: 'a request whose first crash is final has nothing read ahead',
  },
  {
    cure: 'after a redrive the unread are counted',
    test: AHEAD,
    history: 'after a redrive the share counts what runs again, and no gaps',
  },
];
