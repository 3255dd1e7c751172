// Written by scripts/build-lua.mjs from the headers in lua/. DO NOT EDIT: run `npm run lua`.
import type { Argument } from '../redis/client.js';
import {
  groupsIn,
  numberIn,
  numbersIn,
  optionalText,
  pairsIn,
  type StreamRow,
  textIn,
  unknownReply,
} from './script-values.js';

export const calls = {
  /** Adds sub-requests to an open request and mints the tokens that they need. A producer numbers its own items from 0. With `first`, a chunk that is sent twice, or overlaps an earlier one, adds nothing twice. Several producers may append: each has its own numbering, and the index of a sub-request is the order in which the server received it. Many calls will read the state of a request with 256 sub-requests. Redis stores a small hash as a list, in which a field that is missing costs a look at all of them. One value of more than 64 bytes (`filler`) makes it a table (docs/decisions/0047-a-slim-settle.md). */
  'append': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
    }): string[] => [k.request, k.work, k.due],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** who appends */ readonly producer: string;
      /** this producer's number of the first item of this chunk */ readonly first: number;
      /** the items */ readonly payloads: readonly string[];
    }): Argument[] => [a.generation, a.producer, a.first, ...a.payloads],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly total: number; readonly mint: number; readonly epoch: number; readonly priority: string; }
      | { readonly verdict: 'gap'; readonly sent: number; }
      | { readonly verdict: 'full'; readonly unsettled: number; }
      | { readonly verdict: 'sealed'; }
      | { readonly verdict: 'cancelling'; }
      | { readonly verdict: 'complete'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', total: Number(r[1]), mint: Number(r[2]), epoch: Number(r[3]), priority: textIn(r[4]) };
        case 'gap':
          return { verdict: 'gap', sent: Number(r[1]) };
        case 'full':
          return { verdict: 'full', unsettled: Number(r[1]) };
        case 'sealed':
          return { verdict: 'sealed' };
        case 'cancelling':
          return { verdict: 'cancelling' };
        case 'complete':
          return { verdict: 'complete' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Cancels a request: what no worker runs at once; what runs keeps its outcome if it succeeds. */
  'cancel': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
      /** index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker */ readonly tries: string;
      /** index -> what its handler last reported */ readonly progress: string;
      /** index -> error; 'index:payload' -> payload */ readonly failed: string;
      /** outcomes in the order of settling */ readonly results: string;
    }): string[] => [k.request, k.work, k.due, k.tries, k.progress, k.failed, k.results],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** shard channel of the request */ readonly channel: string;
    }): Argument[] => [a.generation, a.channel],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'cancelling'; readonly left: number; }
      | { readonly verdict: 'complete'; readonly outcome: 'succeeded' | 'failed' | 'cancelled'; readonly spentAt?: number | undefined; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'cancelling':
          return { verdict: 'cancelling', left: Number(r[1]) };
        case 'complete':
          return { verdict: 'complete', outcome: r[1] as 'succeeded' | 'failed' | 'cancelled', spentAt: numberIn(r[2]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Notes why a worker will not renew its lease, for the error of sub-requests that fail by that crash. The caller has seen the process of the worker end, or is a thread beside an event loop that is blocked. Once the process has ended, its handlers have too, and the lease ends at once. */
  'cause': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
    }): string[] => [k.request, k.work],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** boot id of the worker process */ readonly worker: string;
      /** JSON: exitCode, signal, outOfMemory, blockedMs, as far as they are known */ readonly cause: string;
      /** 1: its handlers have ended; 0: they may still run */ readonly dead: number;
    }): Argument[] => [a.generation, a.worker, a.cause, a.dead],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; }
      | { readonly verdict: 'lost'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok' };
        case 'lost':
          return { verdict: 'lost' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Creates a request. With items, these are all that it gets: it is sealed, and its first token is counted. Without items it is open, and `append` adds them. */
  'create': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests; group 'workers' */ readonly work: string;
      /** outcomes in the order of settling */ readonly results: string;
    }): string[] => [k.request, k.work, k.results],
    args: (a: {
      /** from intent */ readonly generation: number;
      /** name of this submission; tells a repetition from another submitter */ readonly owner: string;
      /** a create older than this is refused, as its tombstone may be gone */ readonly windowMs: number;
      /** length of the producer lease */ readonly leaseMs: number;
      /** names the call; of several with one owner, the request records which one made it; '': none */ readonly call: string;
      /** JSON array of field, value, … Two are lengths, and what ends with them is kept too: delayMs until heldUntil, deadlineMs until deadline. With expedite, priority becomes 'priority~due', which every reply hands on */ readonly options: string;
      /** all its items */ readonly items: readonly Argument[];
    }): Argument[] => [a.generation, a.owner, a.windowMs, a.leaseMs, a.call, a.options, ...a.items],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'created'; readonly tendAt: number; readonly createdBy: string; }
      | { readonly verdict: 'sealed'; readonly tendAt: number; readonly mint: number; readonly epoch: number; readonly priority: string; }
      | { readonly verdict: 'exists'; readonly status: string; readonly generation: number; readonly digest: string; readonly sealedBy: string; readonly sent: number; readonly total: number; readonly createdBy: string; }
      | { readonly verdict: 'void'; readonly above: number; }
    {
      switch (r[0]) {
        case 'created':
          return { verdict: 'created', tendAt: Number(r[1]), createdBy: textIn(r[2]) };
        case 'sealed':
          return { verdict: 'sealed', tendAt: Number(r[1]), mint: Number(r[2]), epoch: Number(r[3]), priority: textIn(r[4]) };
        case 'exists':
          return { verdict: 'exists', status: textIn(r[1]), generation: Number(r[2]), digest: textIn(r[3]), sealedBy: textIn(r[4]), sent: Number(r[5]), total: Number(r[6]), createdBy: textIn(r[7]) };
        case 'void':
          return { verdict: 'void', above: Number(r[1]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Removes a worker from the registry when it closes, and counts what it did since its last report. */
  'deregister': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** boot id -> time of its last sign of life */ readonly workers: string;
      /** boot id -> JSON */ readonly workerInfo: string;
      /** how the queue worked in the last hour */ readonly series: string;
      /** id -> time of its end */ readonly history: string;
      /** counts of this queue */ readonly counters: string;
      /** the last errors */ readonly errors: string;
      /** priority -> tokens ever pushed to its list */ readonly pushed: string;
      /** id -> 'generation task' */ readonly parked: string;
      /** 'task\0id' of those, all of score 0 */ readonly parkedByTask: string;
      /** the token lists and lanes that `named` names */ readonly lists: readonly string[];
    }): string[] => [k.open, k.workers, k.workerInfo, k.series, k.history, k.counters, k.errors, k.pushed, k.parked, k.parkedByTask, ...k.lists],
    args: (a: {
      /** boot id */ readonly worker: string;
      /** which lists are among the keys, as an earlier call answered them, or '' */ readonly named: string;
      /** the last JSON about the worker; it begins with its figures (lib/series); '': there is none */ readonly info: string;
    }): Argument[] => [a.worker, a.named, a.info],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'departed'; readonly left: string; }
    {
      switch (r[0]) {
        case 'departed':
          return { verdict: 'departed', left: textIn(r[1]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Removes everything of one generation of a request, whatever its state. A short-lived tombstone stays for waiters and late calls. Workers that run its sub-requests learn of the drop at their next call. A drop that comes late leaves the next generation of the id alone. */
  'drop': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
      /** index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker */ readonly tries: string;
      /** index -> what its handler last reported */ readonly progress: string;
      /** index -> error; 'index:payload' -> payload */ readonly failed: string;
      /** outcomes in the order of settling */ readonly results: string;
    }): string[] => [k.request, k.work, k.due, k.tries, k.progress, k.failed, k.results],
    args: (a: {
      /** that is removed */ readonly generation: number;
      /** shard channel of the request */ readonly channel: string;
      /** how long it is remembered that it was dropped */ readonly tombstoneMs: number;
    }): Argument[] => [a.generation, a.channel, a.tombstoneMs],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'dropped'; readonly generation: number; readonly queue: string; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'dropped':
          return { verdict: 'dropped', generation: Number(r[1]), queue: textIn(r[2]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Turns tokens into permits, for one worker and several requests: of each as many as it has free slots and the limit leaves. The call also reads the first sub-requests for these permits, at most about a mebibyte of each: a small request is then taken in one call. `op` numbers the enters, takes and settles of one worker process upwards, in the order of sending, so that a call that arrives twice or late grants nothing. The number is kept after the worker left. `answered` reveals a server that lost writes (lib/forgotten). */
  'enter': {
    keys: (k: {
      /** of each: its state, its sub-requests, those delayed and returned */ readonly requests: readonly { readonly request: string; readonly work: string; readonly due: string }[];
    }): string[] => [...k.requests.flatMap((e) => [e.request, e.work, e.due])],
    args: (a: {
      /** boot id of the worker process */ readonly worker: string;
      /** how long the permits last without a settle or renew */ readonly leaseMs: number;
      /** ' name name ' of the tasks that the worker serves, or '*' for all */ readonly tasks: string;
      /** sub-requests of each that it may read here */ readonly most: number;
      /** how many it may read for each new permit beyond that, if it gets all that the limit allows and the request has no more */ readonly ahead: number;
      /** the same, also if it does not get all that the limit allows, where a sub-request fails only by its third crash: handlers are so short that these run before another worker could enter */ readonly quick: number;
      /** of each request · op: number of this call · want: free slots · awaited: how many of these are still in use, by handlers of other requests that end soon · answered: number of the worker's last call for the request that was answered; 0: none · epochs: one for each token that brought the worker here */ readonly entering: readonly { readonly generation: number; readonly op: number; readonly want: number; readonly awaited: number; readonly answered: number; readonly epochs: string; }[];
    }): Argument[] => [a.worker, a.leaseMs, a.tasks, a.most, a.ahead, a.quick, ...a.entering.flatMap((e) => [e.generation, e.op, e.want, e.awaited, e.answered, e.epochs])],
    reply(all: readonly unknown[]): readonly (
      | { readonly verdict: 'ok'; readonly permits: number; readonly mint: number; readonly epoch: number; readonly dueNow: number; readonly attempts: number; readonly ends: number; readonly ready: number; readonly live: number; readonly quick: number; readonly priority: string; readonly task: string; readonly grantNo: string; readonly policy: string; readonly entries: unknown; }
      | { readonly verdict: 'unserved'; readonly task: string; readonly priority: string; }
      | { readonly verdict: 'complete'; readonly outcome: 'succeeded' | 'failed' | 'cancelled'; readonly spentAt?: number | undefined; }
      | { readonly verdict: 'gone'; }
    )[] {
      return all.map((one) => {
        const r = one as readonly unknown[];
        switch (r[0]) {
        case 'ok': {
          const numbers = numbersIn(r[1]);
          return { verdict: 'ok', permits: numbers[0] as number, mint: numbers[1] as number, epoch: numbers[2] as number, dueNow: numbers[3] as number, attempts: numbers[4] as number, ends: numbers[5] as number, ready: numbers[6] as number, live: numbers[7] as number, quick: numbers[8] as number, priority: textIn(r[2]), task: textIn(r[3]), grantNo: textIn(r[4]), policy: textIn(r[5]), entries: r[6] as unknown };
        }
        case 'unserved':
          return { verdict: 'unserved', task: textIn(r[1]), priority: textIn(r[2]) };
        case 'complete':
          return { verdict: 'complete', outcome: r[1] as 'succeeded' | 'failed' | 'cancelled', spentAt: numberIn(r[2]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
        }
      });
    },
  },
  /** Returns the tokens of a request that a worker left and takes the next ones, in one call. */
  'exchange': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** priority -> tokens ever pushed to its list */ readonly pushed: string;
      /** those that are served before the request's, in their order, lanes that are known to be used among them; as the last the request's, of one that is expedited its lane */ readonly lists: readonly string[];
    }): string[] => [k.open, k.pushed, ...k.lists],
    args: (a: {
      /** of the request that was left */ readonly id: string;
      /** of the request */ readonly generation: number;
      /** in which the tokens were counted */ readonly epoch: number;
      /** how many to return, 1 or more */ readonly count: number;
      /** of the request's list */ readonly priority: number;
      /** how many to take at most, 1 or more */ readonly take: number;
      /** when it was due, of one that is expedited; left out: it is not */ readonly due?: number | undefined;
      /** shard channel of the queue's workers, with due */ readonly channel?: string | undefined;
    }): Argument[] => [a.id, a.generation, a.epoch, a.count, a.priority, a.take, ...(a.due === undefined ? [] : [a.due]), ...(a.channel === undefined ? [] : [a.channel])],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'exchanged'; readonly tokens: readonly string[]; }
      | { readonly verdict: 'closed'; readonly tokens: readonly string[]; }
    {
      switch (r[0]) {
        case 'exchanged':
          return { verdict: 'exchanged', tokens: r.slice(1) as string[] };
        case 'closed':
          return { verdict: 'closed', tokens: r.slice(1) as string[] };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Removes requests that ended from the queue side, up to 200 in one call. Each is gated by its generation, so that it happens once and never to the next generation of the id. The ends count in the order in which they are named. */
  'finish': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** id -> time of its next attention */ readonly agenda: string;
      /** id -> priority * 2^44 + mark */ readonly wait: string;
      /** id -> 'epoch' or 'epoch:passedAt' */ readonly marks: string;
      /** id -> 'generation task' */ readonly parked: string;
      /** 'task\0id' of those, all of score 0 */ readonly parkedByTask: string;
      /** priority -> tokens ever pushed to its list */ readonly pushed: string;
      /** counts of this queue */ readonly counters: string;
      /** id -> time of its end */ readonly history: string;
      /** the last errors */ readonly errors: string;
      /** boot id -> time of its last sign of life */ readonly workers: string;
      /** boot id -> JSON */ readonly workerInfo: string;
      /** how the queue worked in the last hour */ readonly series: string;
      /** 'id~generation' -> when to unlink what is kept of it, of those that keep much */ readonly spent: string;
      /** the token lists and lanes that `named` names */ readonly lists: readonly string[];
    }): string[] => [k.open, k.agenda, k.wait, k.marks, k.parked, k.parkedByTask, k.pushed, k.counters, k.history, k.errors, k.workers, k.workerInfo, k.series, k.spent, ...k.lists],
    args: (a: {
      /** how long an ended id is remembered */ readonly historyMs: number;
      /** how many are remembered, and some more */ readonly historyMax: number;
      /** which lists are among the keys, as an earlier call answered them, or '' */ readonly named: string;
      /** up to 200 outcome: 'succeeded', 'failed', 'cancelled': remembered; 'dropped', 'gone': forgotten · spentAt: server time at which to unlink what it keeps; 0: it goes by itself */ readonly ends: readonly { readonly id: string; readonly generation: number; readonly outcome: string; readonly spentAt: number; }[];
    }): Argument[] => [a.historyMs, a.historyMax, a.named, ...a.ends.flatMap((e) => [e.id, e.generation, e.outcome, e.spentAt])],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'done'; readonly finished: number; readonly left: string; }
    {
      switch (r[0]) {
        case 'done':
          return { verdict: 'done', finished: Number(r[1]), left: textIn(r[2]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Notes that somebody follows the results of a running request: from now on, and until `forMs` from now, an outcome is settled without waiting for others (`settle` and `enter` answer `live`). */
  'follow': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
    }): string[] => [k.request, k.work],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** how long from now; at most 10 s count */ readonly forMs: number;
    }): Argument[] => [a.generation, a.forMs],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'noted'; }
      | { readonly verdict: 'complete'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'noted':
          return { verdict: 'noted' };
        case 'complete':
          return { verdict: 'complete' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Holds a request: until then no permit is granted, no token minted and nothing read of it. What runs continues. A hold never shortens a longer one. */
  'hold': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
    }): string[] => [k.request, k.work],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** how long from now */ readonly holdMs: number;
      /** 'memory': its results lack room; '': a handler asked for it */ readonly reason: string;
    }): Argument[] => [a.generation, a.holdMs, a.reason],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'held'; readonly until: number; }
      | { readonly verdict: 'complete'; readonly outcome: 'succeeded' | 'failed' | 'cancelled'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'held':
          return { verdict: 'held', until: Number(r[1]) };
        case 'complete':
          return { verdict: 'complete', outcome: r[1] as 'succeeded' | 'failed' | 'cancelled' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Adds ids to a queue of ids, behind those that are pending. A sender numbers its chunks upwards and sends them one after the other, so that a chunk that arrives twice, or late, adds nothing twice. If the chunk before it is missing, the server lost that one, and the sender continues from there. */
  'id-add': {
    keys: (k: {
      /** of the queue */ readonly state: string;
      /** ids; pushed right, popped left */ readonly pending: string;
      /** of a unique queue: ids that are pending or running */ readonly known: string;
      /** sender -> time until which the number of its last chunk is kept */ readonly senders: string;
    }): string[] => [k.state, k.pending, k.known, k.senders],
    args: (a: {
      /** of the queue */ readonly incarnation: string;
      /** who adds */ readonly sender: string;
      /** of this chunk */ readonly number: number;
      /** for how long its number is kept from here: longer than a call may be late */ readonly keepMs: number;
      /** number of the first chunk of the same add */ readonly first: number;
      /** at most 500 */ readonly ids: readonly string[];
    }): Argument[] => [a.incarnation, a.sender, a.number, a.keepMs, a.first, ...a.ids],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly pending: number; readonly added: number; }
      | { readonly verdict: 'gap'; readonly number: number; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', pending: Number(r[1]), added: Number(r[2]) };
        case 'gap':
          return { verdict: 'gap', number: Number(r[1]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Removes a queue of ids with everything in it. */
  'id-drop': {
    keys: (k: {
      /** of the queue */ readonly state: string;
      /** ids */ readonly pending: string;
      /** number -> time at which its time runs out */ readonly running: string;
      /** number -> 'attempt:stamp:id' */ readonly tasks: string;
      /** ids that are pending or running */ readonly known: string;
      /** the latest failures */ readonly failed: string;
      /** sender -> time until which the number of its last chunk is kept */ readonly senders: string;
    }): string[] => [k.state, k.pending, k.running, k.tasks, k.known, k.failed, k.senders],
    args: (a: {
      /** of the queue */ readonly incarnation: string;
    }): Argument[] => [a.incarnation],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'dropped'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'dropped':
          return { verdict: 'dropped' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Shows the counts of a queue of ids at one moment, when its next item runs out, and some of its latest failures. */
  'id-inspect': {
    keys: (k: {
      /** of the queue */ readonly state: string;
      /** ids */ readonly pending: string;
      /** number -> time at which its time runs out */ readonly running: string;
      /** the latest 100 failures, newest left: id, key, message, time of each */ readonly failed: string;
    }): string[] => [k.state, k.pending, k.running, k.failed],
    args: (a: {
      /** of the queue; '': whichever is there, for somebody who has not joined it */ readonly incarnation: string;
      /** of the failures that are wanted; 0 is the latest */ readonly first: number;
      /** how many; 0: none */ readonly count: number;
    }): Argument[] => [a.incarnation, a.first, a.count],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly pending: number; readonly running: number; readonly completed: number; readonly failures: number; readonly failed: readonly { readonly id: string; readonly key: string; readonly message: string; readonly at: number }[]; readonly timeoutMs: number; readonly unique: number; readonly next: number; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', pending: Number(r[1]), running: Number(r[2]), completed: Number(r[3]), failures: Number(r[4]), failed: groupsIn(r[5], 0, 4, (flat, i) => ({ id: textIn(flat[i + 0]), key: textIn(flat[i + 1]), message: textIn(flat[i + 2]), at: Number(flat[i + 3]) })), timeoutMs: Number(r[6]), unique: Number(r[7]), next: Number(r[8]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Joins the queue of ids of this name, or creates it. `incarnation` tells one from a later one of the name. */
  'id-join': {
    keys: (k: {
      /** of the queue: incarnation, options, counters, number of the last add of each sender */ readonly state: string;
    }): string[] => [k.state],
    args: (a: {
      /** of the queue, if this creates it */ readonly incarnation: string;
      /** how long a task may be in one hand; '' when the caller takes what is there */ readonly timeoutMs?: number | undefined;
      /** 1: an id is one task while it is pending or running; '' as above */ readonly unique?: number | undefined;
      /** timeoutMs of one that is created without */ readonly defaultMs: number;
    }): Argument[] => [a.incarnation, a.timeoutMs ?? '', a.unique ?? '', a.defaultMs],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'joined'; readonly incarnation: string; readonly timeoutMs: number; readonly unique: number; }
      | { readonly verdict: 'differs'; readonly timeoutMs: number; readonly unique: number; }
    {
      switch (r[0]) {
        case 'joined':
          return { verdict: 'joined', incarnation: textIn(r[1]), timeoutMs: Number(r[2]), unique: Number(r[3]) };
        case 'differs':
          return { verdict: 'differs', timeoutMs: Number(r[1]), unique: Number(r[2]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Hands out the next task of a queue of ids, or says why there is none. Pending tasks come first, in order; then one whose time ran out, which the caller may resume. A task that is overdue by another whole timeout is offered before pending ones, once per timeout, so that endless adds do not starve it. The number of a task is its place in the order of adding, given when it is popped. A server that lost its last writes may give it to another id; therefore the attempts of a task count from a number that its caller drew. */
  'id-pull': {
    keys: (k: {
      /** of the queue */ readonly state: string;
      /** ids; pushed right, popped left */ readonly pending: string;
      /** number -> time at which its time runs out, or at which it was last offered after that */ readonly running: string;
      /** number -> 'attempt:stamp:id' of those that run or ran out */ readonly tasks: string;
    }): string[] => [k.state, k.pending, k.running, k.tasks],
    args: (a: {
      /** of the queue */ readonly incarnation: string;
      /** number of the first attempt: 32 · a number that the caller drew anew, + 1 */ readonly first: number;
    }): Argument[] => [a.incarnation, a.first],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ready'; readonly number: number; readonly attempt: number; readonly id: string; readonly at: number; }
      | { readonly verdict: 'timedout'; readonly number: number; readonly attempt: number; readonly id: string; readonly at: number; }
      | { readonly verdict: 'processing'; readonly at: number; }
      | { readonly verdict: 'none'; readonly at: number; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ready':
          return { verdict: 'ready', number: Number(r[1]), attempt: Number(r[2]), id: textIn(r[3]), at: Number(r[4]) };
        case 'timedout':
          return { verdict: 'timedout', number: Number(r[1]), attempt: Number(r[2]), id: textIn(r[3]), at: Number(r[4]) };
        case 'processing':
          return { verdict: 'processing', at: Number(r[1]) };
        case 'none':
          return { verdict: 'none', at: Number(r[1]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Takes over a task whose time ran out. This compares and sets its attempt: of several consumers that were offered the same attempt exactly one gets it. */
  'id-resume': {
    keys: (k: {
      /** of the queue */ readonly state: string;
      /** number -> time at which its time runs out, or at which it was last offered after that */ readonly running: string;
      /** number -> 'attempt:stamp:id' */ readonly tasks: string;
    }): string[] => [k.state, k.running, k.tasks],
    args: (a: {
      /** of the queue */ readonly incarnation: string;
      /** of the task */ readonly number: number;
      /** that ran out */ readonly attempt: number;
    }): Argument[] => [a.incarnation, a.number, a.attempt],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ready'; readonly number: number; readonly attempt: number; readonly id: string; readonly at: number; }
      | { readonly verdict: 'none'; readonly at: number; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ready':
          return { verdict: 'ready', number: Number(r[1]), attempt: Number(r[2]), id: textIn(r[3]), at: Number(r[4]) };
        case 'none':
          return { verdict: 'none', at: Number(r[1]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Ends a task of a queue of ids. A success counts from any attempt, as long as the task is there; a failure only from the current attempt. Either counts once. The attempts of one task lie in one block of 32 (id-pull); an attempt of another block belongs to a task that the server forgot, and whose number it gave to another id. */
  'id-settle': {
    keys: (k: {
      /** of the queue */ readonly state: string;
      /** number -> time at which its time runs out */ readonly running: string;
      /** number -> 'attempt:stamp:id' */ readonly tasks: string;
      /** of a unique queue: ids that are pending or running */ readonly known: string;
      /** the latest 100 failures, newest left: id, key, message, time of each */ readonly failed: string;
    }): string[] => [k.state, k.running, k.tasks, k.known, k.failed],
    args: (a: {
      /** of the queue */ readonly incarnation: string;
      /** of the task */ readonly number: number;
      /** that reports */ readonly attempt: number;
      /** 's' success, 'f' failure */ readonly kind: string;
      /** of the failure */ readonly message: string;
    }): Argument[] => [a.incarnation, a.number, a.attempt, a.kind, a.message],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'counted'; }
      | { readonly verdict: 'late'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'counted':
          return { verdict: 'counted' };
        case 'late':
          return { verdict: 'late' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** A read-only picture of one request. */
  'inspect': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
      /** index -> what its handler last reported */ readonly progress: string;
    }): string[] => [k.request, k.work, k.due, k.progress],
    args: (a: {
      /** of the state that are wanted; none: all */ readonly fields: readonly string[];
    }): Argument[] => [...a.fields],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly now: number; readonly ready: number; readonly inFlight: number; readonly delayed: number; readonly state: Readonly<Record<string, string>>; readonly progress: Readonly<Record<string, string>>; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', now: Number(r[1]), ready: Number(r[2]), inFlight: Number(r[3]), delayed: Number(r[4]), state: pairsIn(r[5]), progress: pairsIn(r[6]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Opens an id on the queue side before anything exists on the request side, so that the agenda finds whatever a producer leaves behind when it dies. */
  'intent': {
    keys: (k: {
      /** id -> generation of every open request */ readonly open: string;
      /** id -> time of its next attention */ readonly agenda: string;
      /** counts of this queue; 'generation': none is given out that is lower; 'openedAt': the latest time by which an id was opened, so that a tick sees that the clock went back since; 'firstAt': the time of the first */ readonly counters: string;
    }): string[] => [k.open, k.agenda, k.counters],
    args: (a: {
      /** of the request */ readonly id: string;
      /** until the first tend checks whether the request was created */ readonly graceMs: number;
      /** the generation is greater than this one, which the request side knows; 0: it knows none */ readonly above: number;
    }): Argument[] => [a.id, a.graceMs, a.above],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'opened'; readonly generation: number; }
    {
      switch (r[0]) {
        case 'opened':
          return { verdict: 'opened', generation: Number(r[1]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Notes that a worker met a request whose task it does not serve. A worker that serves the task finds the request here at its next tick and enters without a token. */
  'park': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** id -> 'generation task' */ readonly parked: string;
      /** 'task\0id' of those, all of score 0 */ readonly parkedByTask: string;
    }): string[] => [k.open, k.parked, k.parkedByTask],
    args: (a: {
      /** of the request */ readonly id: string;
      /** of the request */ readonly generation: number;
      /** its task, perhaps empty */ readonly task: string;
    }): Argument[] => [a.id, a.generation, a.task],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'parked'; }
      | { readonly verdict: 'closed'; }
    {
      switch (r[0]) {
        case 'parked':
          return { verdict: 'parked' };
        case 'closed':
          return { verdict: 'closed' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Pauses a queue, for good or for a time: its workers take no more tokens and leave their requests as their handlers end. A message notifies them; at the latest they see it with their next tick. */
  'pause-queue': {
    keys: (k: {
      /** until: when the pause ends by itself, 0: never; length: 'until ms', for how long it is meant */ readonly paused: string;
    }): string[] => [k.paused],
    args: (a: {
      /** how long from here; 0: until `resume-queue` */ readonly forMs: number;
      /** shard channel that notifies the workers of the queue */ readonly channel: string;
    }): Argument[] => [a.forMs, a.channel],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'paused'; readonly until: number; readonly now: number; }
    {
      switch (r[0]) {
        case 'paused':
          return { verdict: 'paused', until: Number(r[1]), now: Number(r[2]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Reads which workers have sub-requests of a request, and which. */
  'pending': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
    }): string[] => [k.request, k.work],
    args: (a: {
      /** boot id of the worker whose sub-requests are wanted; '': how many each worker has */ readonly worker: string;
      /** index from which on */ readonly from: number;
      /** how many at most */ readonly count: number;
      /** only those that it has had for at least so long */ readonly leastMs: number;
    }): Argument[] => [a.worker, a.from, a.count, a.leastMs],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly workers: Readonly<Record<string, string>>; readonly entries: readonly { readonly entry: string; readonly forMs: number }[]; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', workers: pairsIn(r[1]), entries: groupsIn(r, 2, 2, (flat, i) => ({ entry: textIn(flat[i + 0]), forMs: Number(flat[i + 1]) })) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Puts tokens that the request side has minted into their priority list. */
  'push': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** priority -> tokens ever pushed to its list */ readonly pushed: string;
      /** tokens of one priority; pushed left, popped right; with due, its lane, by due time */ readonly list: string;
    }): string[] => [k.open, k.pushed, k.list],
    args: (a: {
      /** of the request */ readonly id: string;
      /** of the request */ readonly generation: number;
      /** in which the tokens were counted */ readonly epoch: number;
      /** how many; 0: only asks whether it is open */ readonly count: number;
      /** of the list */ readonly priority: number;
      /** when it was due, of one that is expedited; left out: it is not */ readonly due?: number | undefined;
      /** shard channel of the queue's workers, with due */ readonly channel?: string | undefined;
    }): Argument[] => [a.id, a.generation, a.epoch, a.count, a.priority, ...(a.due === undefined ? [] : [a.due]), ...(a.channel === undefined ? [] : [a.channel])],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'pushed'; }
      | { readonly verdict: 'closed'; }
    {
      switch (r[0]) {
        case 'pushed':
          return { verdict: 'pushed' };
        case 'closed':
          return { verdict: 'closed' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Reads records of the results stream: at most about a megabyte, but at least one. Their lengths are not known before, so it reads as many at a time as would fit if each were as long as the longest that was ever written. Long records are better read by a plain command, because a script makes strings of them, which costs several times as much as sending them: then it only says how many. */
  'read-results': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** outcomes in the order of settling */ readonly results: string;
    }): string[] => [k.request, k.results],
    args: (a: {
      /** one that the request is known to have reached; 0: none */ readonly generation: number;
      /** where to begin, as XRANGE has it */ readonly from: string;
      /** where to end */ readonly to: string;
      /** how many at most */ readonly count: number;
    }): Argument[] => [a.generation, a.from, a.to, a.count],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'read'; readonly records: readonly StreamRow[]; }
      | { readonly verdict: 'long'; readonly most: number; readonly from: string; readonly to: string; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'read':
          return { verdict: 'read', records: r.slice(1) as StreamRow[] };
        case 'long':
          return { verdict: 'long', most: Number(r[1]), from: textIn(r[2]), to: textIn(r[3]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Reads how a queue worked lately. */
  'read-series': {
    keys: (k: {
      /** how the queue worked in the last hour */ readonly series: string;
      /** boot id -> time of its last sign of life */ readonly workers: string;
    }): string[] => [k.series, k.workers],
    args: (a: {
      /** how many intervals at most */ readonly count: number;
    }): Argument[] => [a.count],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'series'; readonly now: number; readonly workers: number; readonly intervals: readonly string[]; }
    {
      switch (r[0]) {
        case 'series':
          return { verdict: 'series', now: Number(r[1]), workers: Number(r[2]), intervals: r[3] as readonly string[] };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Reads fields of the state of several requests, whichever form each has (lib/compact). */
  'read-state': {
    keys: (k: {
      /** state of each */ readonly requests: readonly string[];
    }): string[] => [...k.requests],
    args: (a: {
      /** which */ readonly fields: readonly string[];
    }): Argument[] => [...a.fields],
    reply(all: readonly unknown[]): readonly (
      | { readonly verdict: 'read'; readonly values: readonly string[]; }
    )[] {
      return all.map((one) => {
        const r = one as readonly unknown[];
        switch (r[0]) {
        case 'read':
          return { verdict: 'read', values: r.slice(1) as string[] };
        default:
          throw unknownReply(r);
        }
      });
    },
  },
  /** Opens the next generation of a request that is complete, in which failed sub-requests run again. It is open under a producer lease, like a request whose items are still coming: `run-again` moves them in, and `seal` or the end of the lease closes it. What succeeded stays, and so do its results. Nothing is opened when none of the failures that were found is there any more, as somebody else has redriven them since. */
  'redrive': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests; group 'workers' */ readonly work: string;
      /** index -> error; 'index:payload' -> payload */ readonly failed: string;
      /** outcomes in the order of settling */ readonly results: string;
    }): string[] => [k.request, k.work, k.failed, k.results],
    args: (a: {
      /** of the new one, from intent */ readonly generation: number;
      /** who redrives; tells a repetition from somebody else's redrive */ readonly owner: string;
      /** length of the lease of the owner */ readonly leaseMs: number;
      /** where to go on with what workers left, from the reply before; '0' at first; '': all of it now */ readonly clearing: string;
      /** of failures that are to run again, the first ones; none: it opens whatever has failed */ readonly indexes: readonly number[];
    }): Argument[] => [a.generation, a.owner, a.leaseMs, a.clearing, ...a.indexes],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'opened'; readonly sealedBy: string; readonly sent: number; readonly createdAt: number; }
      | { readonly verdict: 'none'; }
      | { readonly verdict: 'clearing'; readonly from: string; }
      | { readonly verdict: 'exists'; readonly status: string; readonly generation: number; }
      | { readonly verdict: 'void'; readonly above: number; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'opened':
          return { verdict: 'opened', sealedBy: textIn(r[1]), sent: Number(r[2]), createdAt: Number(r[3]) };
        case 'none':
          return { verdict: 'none' };
        case 'clearing':
          return { verdict: 'clearing', from: textIn(r[1]) };
        case 'exists':
          return { verdict: 'exists', status: textIn(r[1]), generation: Number(r[2]) };
        case 'void':
          return { verdict: 'void', above: Number(r[1]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Extends the lease of the permits of a worker, and keeps what its handlers reported. Never brings withdrawn permits back, and keeps no checkpoint of a sub-request that another worker owns by now. */
  'renew': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** index -> failed attempts; 'index:crashes', 'index:alone'; 'index:checkpoint' -> JSON */ readonly tries: string;
      /** index -> what its handler last reported */ readonly progress: string;
    }): string[] => [k.request, k.work, k.tries, k.progress],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** boot id of the worker process */ readonly worker: string;
      /** how long the permits last from here */ readonly leaseMs: number;
      /** index, number or 'index:checkpoint', JSON, … of handlers that reported since */ readonly reports: readonly Argument[];
    }): Argument[] => [a.generation, a.worker, a.leaseMs, ...a.reports],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly permits: number; }
      | { readonly verdict: 'cancelling'; readonly permits: number; }
      | { readonly verdict: 'lost'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', permits: Number(r[1]) };
        case 'cancelling':
          return { verdict: 'cancelling', permits: Number(r[1]) };
        case 'lost':
          return { verdict: 'lost' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Renews the lease of the producers of an open request. */
  'renew-producer': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
    }): string[] => [k.request, k.work],
    args: (a: {
      /** of the request */ readonly generation: number;
    }): Argument[] => [a.generation],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly total: number; readonly unsettled: number; }
      | { readonly verdict: 'sealed'; }
      | { readonly verdict: 'cancelling'; }
      | { readonly verdict: 'complete'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', total: Number(r[1]), unsettled: Number(r[2]) };
        case 'sealed':
          return { verdict: 'sealed' };
        case 'cancelling':
          return { verdict: 'cancelling' };
        case 'complete':
          return { verdict: 'complete' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Opens the id of an unfinished request again when the queue side does not know it any more, as after the server lost its last writes: otherwise no process would ever tend the request. */
  'reopen': {
    keys: (k: {
      /** id -> generation of every open request */ readonly open: string;
      /** id -> time of its next attention */ readonly agenda: string;
      /** counts of this queue; 'generation' is the last one given out; 'openedAt' as in `intent` */ readonly counters: string;
    }): string[] => [k.open, k.agenda, k.counters],
    args: (a: {
      /** of the request */ readonly id: string;
      /** of the request on the request side */ readonly generation: number;
      /** of an intent that the request side refused because of this generation, which takes its place; 0: none */ readonly instead: number;
    }): Argument[] => [a.id, a.generation, a.instead],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'reopened'; }
      | { readonly verdict: 'open'; }
    {
      switch (r[0]) {
        case 'reopened':
          return { verdict: 'reopened' };
        case 'open':
          return { verdict: 'open' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Ends the pause of a queue, no matter who began it. */
  'resume-queue': {
    keys: (k: {
      /** until: when the pause ends by itself, 0: never; length: 'until ms', for how long it is meant */ readonly paused: string;
    }): string[] => [k.paused],
    args: (a: {
      /** shard channel that notifies the workers of the queue */ readonly channel: string;
    }): Argument[] => [a.channel],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'resumed'; readonly until: number; }
    {
      switch (r[0]) {
        case 'resumed':
          return { verdict: 'resumed', until: Number(r[1]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Moves failed sub-requests into the generation that `redrive` opened: each is ready again under its index, with no attempt behind it, and does not count as failed any more. Indexes rise, also from call to call. An index that has not failed, or has failed anew in this generation, is skipped. */
  'run-again': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
      /** index -> error; 'index:payload' -> payload; 'index:runs' -> 'generation …' */ readonly failed: string;
    }): string[] => [k.request, k.work, k.due, k.failed],
    args: (a: {
      /** of the new one */ readonly generation: number;
      /** who redrives */ readonly owner: string;
      /** of payloads to move, about */ readonly maxBytes: number;
      /** of the failed sub-requests, at most 500 */ readonly indexes: readonly number[];
    }): Argument[] => [a.generation, a.owner, a.maxBytes, ...a.indexes],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly done: number; readonly moved: number; readonly mint: number; readonly epoch: number; readonly priority: number; }
      | { readonly verdict: 'sealed'; }
      | { readonly verdict: 'cancelling'; }
      | { readonly verdict: 'complete'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', done: Number(r[1]), moved: Number(r[2]), mint: Number(r[3]), epoch: Number(r[4]), priority: Number(r[5]) };
        case 'sealed':
          return { verdict: 'sealed' };
        case 'cancelling':
          return { verdict: 'cancelling' };
        case 'complete':
          return { verdict: 'complete' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Notes that suspects (sub-requests whose next crash may be their last) are about to run, and that nothing else runs in this process. How many run together is kept of each: when they crash, the next company is smaller. Only the crash of a suspect that ran alone counts against it for good. */
  'run-alone': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** index -> failed attempts; 'index:crashes', 'index:alone' -> worker; 'index:company' */ readonly tries: string;
    }): string[] => [k.request, k.work, k.tries],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** boot id of the worker process */ readonly worker: string;
      /** how many run in this process, those of other requests included */ readonly company: number;
      /** the suspects of this request */ readonly entries: readonly string[];
    }): Argument[] => [a.generation, a.worker, a.company, ...a.entries],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly ends: number; }
      | { readonly verdict: 'lost'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', ends: Number(r[1]) };
        case 'lost':
          return { verdict: 'lost' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Brings the next attention of a request forward: when a worker knows when its next retry is due, or before a client changes a request. */
  'schedule-tend': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** id -> time of its next attention; 'id~' -> until when it is tended for a change */ readonly agenda: string;
    }): string[] => [k.open, k.agenda],
    args: (a: {
      /** of the request */ readonly id: string;
      /** of the request */ readonly generation: number;
      /** when to tend, server time in ms; 0: now */ readonly time: number;
      /** with time 0: so long from now, and until then no tend puts it off, as a change follows */ readonly afterMs?: number | undefined;
    }): Argument[] => [a.id, a.generation, a.time, ...(a.afterMs === undefined ? [] : [a.afterMs])],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'noted'; }
      | { readonly verdict: 'closed'; }
    {
      switch (r[0]) {
        case 'noted':
          return { verdict: 'noted' };
        case 'closed':
          return { verdict: 'closed' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Ends the adding of sub-requests. A request with none, or with all of them settled, completes here. */
  'seal': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
      /** index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker */ readonly tries: string;
      /** index -> what its handler last reported */ readonly progress: string;
      /** index -> error; 'index:payload' -> payload */ readonly failed: string;
      /** outcomes in the order of settling */ readonly results: string;
    }): string[] => [k.request, k.work, k.due, k.tries, k.progress, k.failed, k.results],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** who seals */ readonly producer: string;
      /** how many items this producer has appended in total */ readonly sent: number;
      /** shard channel of the request */ readonly channel: string;
    }): Argument[] => [a.generation, a.producer, a.sent, a.channel],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'sealed'; readonly total: number; }
      | { readonly verdict: 'gap'; readonly sent: number; }
      | { readonly verdict: 'complete'; readonly outcome: 'succeeded' | 'failed' | 'cancelled'; readonly spentAt?: number | undefined; }
      | { readonly verdict: 'cancelling'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'sealed':
          return { verdict: 'sealed', total: Number(r[1]) };
        case 'gap':
          return { verdict: 'gap', sent: Number(r[1]) };
        case 'complete':
          return { verdict: 'complete', outcome: r[1] as 'succeeded' | 'failed' | 'cancelled', spentAt: numberIn(r[2]) };
        case 'cancelling':
          return { verdict: 'cancelling' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Settles what a worker finished, of several requests: of each it counts the outcomes, keeps or returns permits, reads new sub-requests for the permits that are left, and completes the request after its last outcome. The hot script. At most 1,000 outcomes a request. The successes come first: the entry of each, and all their results in one text, as they are recorded. Then come all others, four arguments each: index, kind, value, number.   'f' failure   value: error                       number: delayMs before the next attempt, if one is left;                                                            -1: there is to be none   'b' returned  read or started, but not finished  value, number: unused `keep` is the number of permits that the worker wants to keep. It is absolute, so that a call that arrives twice frees nothing twice, and never below `running`, the number of handlers that still run. `op` numbers the enters, takes and settles of one worker process upwards, in the order of sending. Of a call that arrives after a later one only the successes count, and it reads nothing. A worker that has had permits without a gap since it read an entry still owns it: entries are taken only from workers without a permit. `grantNo` names the grant under which the successes were read. If it is the present one, they are acknowledged together. Otherwise each is asked for on its own. So it is once a worker without a permit has succeeded with an entry that another worker owned by then, and after this server lost writes of which a worker had received the reply (`contested`). Asked for on its own, a success does not count if only another worker has read the entry: the server lost the read, and perhaps the append, so that the entry is another item. */
  'settle': {
    keys: (k: {
      /** of each request: its state · its sub-requests · those delayed and returned · index -> failed attempts, 'index:crashes' -> crashes, 'index:alone' -> worker · index -> what its handler last reported · index -> error, 'index:payload' -> payload · outcomes in the order of settling: ok, results or !index, attempts */ readonly requests: readonly { readonly request: string; readonly work: string; readonly due: string; readonly tries: string; readonly progress: string; readonly failed: string; readonly results: string }[];
    }): string[] => [...k.requests.flatMap((e) => [e.request, e.work, e.due, e.tries, e.progress, e.failed, e.results])],
    args: (a: {
      /** boot id of the worker process */ readonly worker: string;
      /** how long the permits last from here */ readonly leaseMs: number;
      /** of each request op: number of this call; '' when none of this worker can come late · keep: permits to keep · running: handlers still running · channel: its shard channel · successes: how many there are · grantNo: number of the grant under which they were read, from enter; '' when unsure · newest: greatest index among all outcomes; -1: there are none · values: RS, index, space, result of each success, in their order; '' when none are kept · costs: of each outcome, in their order, as a JSON array (lib/cost) · read: sub-requests to read; never more than permits are left without a handler and `ahead`, nor more than about a mebibyte of them; without a permit none are read · ahead: how many of these may have no permit: the worker starts each when a handler has ended · answered: number of this worker's last call for the request that was answered; 0: none · outcomes: one for each success, then four for each other */ readonly settling: readonly { readonly generation: number; readonly op?: number | undefined; readonly keep: number; readonly running: number; readonly channel: string; readonly successes: number; readonly grantNo: string; readonly newest: number; readonly values: Argument; readonly costs: string; readonly read: number; readonly ahead: number; readonly answered: number; readonly outcomes: readonly Argument[]; }[];
    }): Argument[] => [a.worker, a.leaseMs, ...a.settling.flatMap((e) => [e.generation, e.op ?? '', e.keep, e.running, e.channel, e.successes, e.grantNo, e.newest, e.values, e.costs, e.read, e.ahead, e.answered, e.outcomes.length, ...e.outcomes])],
    reply(all: readonly unknown[]): readonly (
      | { readonly verdict: 'ok'; readonly permits: number; readonly mint: number; readonly epoch: number; readonly dueNow: number; readonly nextDue: number; readonly cancelling: number; readonly cut: number; readonly share: number; readonly live: number; readonly granted: number; readonly left: number; readonly priority: string; readonly entries: unknown; }
      | { readonly verdict: 'complete'; readonly outcome: 'succeeded' | 'failed' | 'cancelled'; readonly spentAt?: number | undefined; }
      | { readonly verdict: 'gone'; }
    )[] {
      return all.map((one) => {
        const r = one as readonly unknown[];
        switch (r[0]) {
        case 'ok': {
          const numbers = numbersIn(r[1]);
          return { verdict: 'ok', permits: numbers[0] as number, mint: numbers[1] as number, epoch: numbers[2] as number, dueNow: numbers[3] as number, nextDue: numbers[4] as number, cancelling: numbers[5] as number, cut: numbers[6] as number, share: numbers[7] as number, live: numbers[8] as number, granted: numbers[9] as number, left: numbers[10] as number, priority: textIn(r[2]), entries: r[3] as unknown };
        }
        case 'complete':
          return { verdict: 'complete', outcome: r[1] as 'succeeded' | 'failed' | 'cancelled', spentAt: numberIn(r[2]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
        }
      });
    },
  },
  /** Whether a worker should leave a request for another one: for one of a higher priority at once, for one of the same priority when its turn is over. A request has at most about 32 tokens outstanding, so 33 tokens at the end where they are popped decide. One that is expedited makes way for a higher priority, and for one of its own that was due before it. */
  'should-yield': {
    keys: (k: {
      /** tokens of the priorities 0 up to that of the request, highest priority first, lanes that are known to be used among them; of one that is expedited, up to its lane */ readonly lists: readonly string[];
    }): string[] => [...k.lists],
    args: (a: {
      /** of the request that the worker works on */ readonly id: string;
      /** of the request, with due */ readonly generation?: number | undefined;
      /** when it was due, of one that is expedited; left out: it is not */ readonly due?: number | undefined;
    }): Argument[] => [a.id, ...(a.generation === undefined ? [] : [a.generation]), ...(a.due === undefined ? [] : [a.due])],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'keep'; }
      | { readonly verdict: 'share'; }
      | { readonly verdict: 'leave'; }
    {
      switch (r[0]) {
        case 'keep':
          return { verdict: 'keep' };
        case 'share':
          return { verdict: 'share' };
        case 'leave':
          return { verdict: 'leave' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Submits requests whose items are all known: does what `intent`, `create` and `push` do, in one call, for a server that has both sides. A small request is compact (lib/compact). The requests of one call have the same options. An id of which anything is there is left alone: the separate calls find out what it is. All of a request is written, or none, and a server that loses its last writes loses all of it. */
  'submit': {
    keys: (k: {
      /** id -> generation of every open request */ readonly open: string;
      /** id -> time of its next attention */ readonly agenda: string;
      /** counts of this queue, as in `intent` */ readonly counters: string;
      /** priority -> tokens ever pushed to its list */ readonly pushed: string;
      /** tokens of the priority; with `expedite` among the options, its lane */ readonly list: string;
      /** of each request: its state, its sub-requests, and its results */ readonly requests: readonly string[];
    }): string[] => [k.open, k.agenda, k.counters, k.pushed, k.list, ...k.requests],
    args: (a: {
      /** until the first tend */ readonly graceMs: number;
      /** an id that was opened longer ago is left alone; as in `create` */ readonly windowMs: number;
      /** length of the producer lease */ readonly leaseMs: number;
      /** of the list */ readonly priority: number;
      /** shard channel of the queue's workers */ readonly channel: string;
      /** JSON array of field, value, …, as the fields of `create` */ readonly options: string;
      /** of each request: id, name of the submission, name of the call or '', number of items, items */ readonly submissions: readonly Argument[];
    }): Argument[] => [a.graceMs, a.windowMs, a.leaseMs, a.priority, a.channel, a.options, ...a.submissions],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'submitted'; readonly generations: readonly number[]; }
    {
      switch (r[0]) {
        case 'submitted':
          return { verdict: 'submitted', generations: numbersIn(r[1]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Takes due sub-requests (returned, reclaimed, retried) out of `due` for a worker with permits: at most 250, and at most about a mebibyte of payloads, but at least one. `op` numbers the calls of one worker process upwards, as in enter and settle: a call that arrives twice takes nothing. `answered` as for `enter`: it reveals a server that lost this take or an earlier call. */
  'take': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
      /** index -> failed attempts; 'index:crashes', 'index:alone', 'index:company'; 'index:checkpoint' -> JSON */ readonly tries: string;
    }): string[] => [k.request, k.work, k.due, k.tries],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** boot id of the worker process */ readonly worker: string;
      /** number of this call; '' when none of this worker can come twice */ readonly op?: number | undefined;
      /** how many at most */ readonly max: number;
      /** number of its last call for this request that was answered; 0: none */ readonly answered: number;
    }): Argument[] => [a.generation, a.worker, a.op ?? '', a.max, a.answered],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly maxCrashes: number; readonly left: number; readonly entries: readonly { readonly entry: string; readonly payload: string; readonly tries: number; readonly crashes: number; readonly checkpoint: string; readonly company: number }[]; }
      | { readonly verdict: 'lost'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', maxCrashes: Number(r[1]), left: Number(r[2]), entries: groupsIn(r, 3, 6, (flat, i) => ({ entry: textIn(flat[i + 0]), payload: textIn(flat[i + 1]), tries: Number(flat[i + 2]), crashes: Number(flat[i + 3]), checkpoint: textIn(flat[i + 4]), company: Number(flat[i + 5]) })) };
        case 'lost':
          return { verdict: 'lost' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** What a tick asks for of one request: withdraws permits whose lease has ended, reclaims what any consumer without a permit has (and counts the crash if its lease ended), follows up a lost producer and the deadline, audits the tokens and mints those that are missing, finishes what a crash left half done, and says when to tend again. */
  'tend': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
      /** index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker */ readonly tries: string;
      /** index -> what its handler last reported */ readonly progress: string;
      /** index -> error; 'index:payload' -> payload */ readonly failed: string;
      /** outcomes in the order of settling */ readonly results: string;
    }): string[] => [k.request, k.work, k.due, k.tries, k.progress, k.failed, k.results],
    args: (a: {
      /** under which the queue side has the id open */ readonly generation: number;
      /** epoch whose tokens have all been popped a grace ago, or '' */ readonly passed: string;
      /** shard channel of the request */ readonly channel: string;
      /** until the next tend of a request that workers have permits of */ readonly auditMs: number;
      /** how long a voided generation is remembered */ readonly tombstoneMs: number;
      /** when Redis was last back after it had been away; 0: never */ readonly resumedAt: number;
      /** when the tick claimed it; 0: not known */ readonly tickedAt: number;
      /** when the tick is longer ago than this, Redis was away in between */ readonly awayMs: number;
      /** when a gap between two ticks ended … */ readonly gapAt: number;
      /** … and how long it was: a shorter lease could not be renewed in it */ readonly gapMs: number;
    }): Argument[] => [a.generation, a.passed, a.channel, a.auditMs, a.tombstoneMs, a.resumedAt, a.tickedAt, a.awayMs, a.gapAt, a.gapMs],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly mint: number; readonly epoch: number; readonly priority: string; readonly before: string; readonly next: number; readonly parked: number; readonly task: string; readonly reclaimed: number; readonly crashed: string; }
      | { readonly verdict: 'complete'; readonly outcome: 'succeeded' | 'failed' | 'cancelled'; readonly spentAt?: number | undefined; readonly crashed?: string | undefined; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', mint: Number(r[1]), epoch: Number(r[2]), priority: textIn(r[3]), before: textIn(r[4]), next: Number(r[5]), parked: Number(r[6]), task: textIn(r[7]), reclaimed: Number(r[8]), crashed: textIn(r[9]) };
        case 'complete':
          return { verdict: 'complete', outcome: r[1] as 'succeeded' | 'failed' | 'cancelled', spentAt: numberIn(r[2]), crashed: optionalText(r[3]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Claims what is due on the agenda, by moving its time ahead: if the claimer dies, it is due again. Notes which requests have had all their earlier tokens popped. A worker reports by the same call that it is alive. */
  'tick': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** id -> time of its next attention */ readonly agenda: string;
      /** id -> priority * 2^44 + mark: it sleeps until its list has been popped up to mark; (100 + priority) * 2^44 + due: until what is due before it has left its lane */ readonly wait: string;
      /** id -> 'epoch' or 'epoch:passedAt' */ readonly marks: string;
      /** priority -> tokens ever pushed to its list */ readonly pushed: string;
      /** id -> 'generation task' */ readonly parked: string;
      /** 'task\0id' of those, all of score 0 */ readonly parkedByTask: string;
      /** boot id -> time of its last sign of life */ readonly workers: string;
      /** boot id -> JSON */ readonly workerInfo: string;
      /** how the queue worked in the last hour */ readonly series: string;
      /** time of the last tick, and of the last one by a process that does not rest; when Redis was last back after it had been away, also the second time in a row; the longest gap between two ticks that still matters; the latest time by which an id was opened; how far the agenda is shifted */ readonly counters: string;
      /** 'id~generation' -> when to unlink what is kept of it, of those that keep much */ readonly spent: string;
      /** until: when the pause of the queue ends by itself, 0: never; length: 'until ms' */ readonly paused: string;
      /** tokens of the priorities 0 … 99, and the lanes that `lanes` names */ readonly lists: readonly string[];
    }): string[] => [k.open, k.agenda, k.wait, k.marks, k.pushed, k.parked, k.parkedByTask, k.workers, k.workerInfo, k.series, k.counters, k.spent, k.paused, ...k.lists],
    args: (a: {
      /** boot id, or '' when a producer or notifier ticks */ readonly worker: string;
      /** JSON about the worker; it begins with its figures (lib/series) */ readonly info: string;
      /** how long a claim lasts */ readonly lockMs: number;
      /** from a token's pop, or a parked request's reply, to its enter at the latest */ readonly graceMs: number;
      /** how many to claim at most */ readonly max: number;
      /** a worker without a sign of life for so long is removed */ readonly goneMs: number;
      /** when nobody ticked for so long, Redis was away … */ readonly awayMs: number;
      /** … or for so long times the number of workers … */ readonly awayPerWorkerMs: number;
      /** 1: … unless the caller and others that rest ticked last: they tick again within goneMs; else 0 */ readonly rests: number;
      /** priorities whose lanes are among the lists, '5,50', or '' */ readonly lanes: string;
      /** ' name name ' of the tasks whose parked requests are wanted, '*' for all, '' for none */ readonly tasks: string;
      /** at most so many parked requests are answered */ readonly maxParked: number;
    }): Argument[] => [a.worker, a.info, a.lockMs, a.graceMs, a.max, a.goneMs, a.awayMs, a.awayPerWorkerMs, a.rests, a.lanes, a.tasks, a.maxParked],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly now: number; readonly next: number; readonly fleet: number; readonly claims: readonly { readonly id: string; readonly generation: number; readonly passed: string; readonly claim: number }[]; readonly parked: readonly { readonly id: string; readonly value: string }[]; readonly resumedAt: number; readonly pausedUntil: number; readonly lanes: string; readonly spent: readonly string[]; readonly gapAt: number; readonly gapMs: number; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', now: Number(r[1]), next: Number(r[2]), fleet: Number(r[3]), claims: groupsIn(r[4], 0, 4, (flat, i) => ({ id: textIn(flat[i + 0]), generation: Number(flat[i + 1]), passed: textIn(flat[i + 2]), claim: Number(flat[i + 3]) })), parked: groupsIn(r[5], 0, 2, (flat, i) => ({ id: textIn(flat[i + 0]), value: textIn(flat[i + 1]) })), resumedAt: Number(r[6]), pausedUntil: Number(r[7]), lanes: textIn(r[8]), spent: r[9] as readonly string[], gapAt: Number(r[10]), gapMs: Number(r[11]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Counts the keys of a timed set, and its leases a page at a time. */
  'timed-counts': {
    keys: (k: {
      /** key -> server time from which it may be taken */ readonly due: string;
      /** key -> 'token at ends.ms after' */ readonly leases: string;
      /** what was discarded */ readonly failures: string;
    }): string[] => [k.due, k.leases, k.failures],
    args: (a: {
      /** '0', then what the call before answered, until that is '0' */ readonly cursor: string;
    }): Argument[] => [a.cursor],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'counts'; readonly keys: number; readonly leased: number; readonly failures: number; readonly next: number; readonly cursor: string; }
    {
      switch (r[0]) {
        case 'counts':
          return { verdict: 'counts', keys: Number(r[1]), leased: Number(r[2]), failures: Number(r[3]), next: Number(r[4]), cursor: textIn(r[5]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Reads discarded items of a timed set in the order of their ends, or the other way: at most about a megabyte, but at least one. */
  'timed-failures': {
    keys: (k: {
      /** what was discarded */ readonly failures: string;
    }): string[] => [k.failures],
    args: (a: {
      /** where to begin, as XRANGE has it, or XREVRANGE */ readonly from: string;
      /** how many at most */ readonly count: number;
      /** 'oldest' or 'newest' first */ readonly order: string;
    }): Argument[] => [a.from, a.count, a.order],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'read'; readonly records: readonly StreamRow[]; }
    {
      switch (r[0]) {
        case 'read':
          return { verdict: 'read', records: r.slice(1) as StreamRow[] };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Puts keys into a timed set, or moves those that are there. A key that somebody else has taken stays taken: it becomes due at its new time, but not before that lease is settled or has ended. `number` counts the puts of one caller upwards, one at a time, so that a put that arrives twice or late does nothing. */
  'timed-put': {
    keys: (k: {
      /** key -> server time from which it may be taken */ readonly due: string;
      /** key -> 'created failures payload', of keys that have a payload */ readonly tasks: string;
      /** key -> 'token at ends.ms after' */ readonly leases: string;
      /** when a length was last given */ readonly clock: string;
      /** what this caller was answered last; goes by itself */ readonly caller: string;
    }): string[] => [k.due, k.tasks, k.leases, k.clock, k.caller],
    args: (a: {
      /** of this call */ readonly number: number;
      /** how long the caller is remembered */ readonly rememberMs: number;
      /** shard channel of those who wait for something to be due */ readonly channel: string;
      /**  token: of the caller's own lease, or '' · time: or '+ms' · payload: or '' */ readonly entries: readonly { readonly key: string; readonly token: string; readonly time: Argument; readonly payload: string; }[];
    }): Argument[] => [a.number, a.rememberMs, a.channel, ...a.entries.flatMap((e) => [e.key, e.token, e.time, e.payload])],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'put'; }
      | { readonly verdict: 'late'; }
    {
      switch (r[0]) {
        case 'put':
          return { verdict: 'put' };
        case 'late':
          return { verdict: 'late' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Settles keys taken from a timed set, each by the lease under which it was taken: a caller that lost a key to another changes nothing. A lease whose time has passed stays valid until another takes the key. `number` counts the settles of one caller upwards, one at a time: a settle that arrives twice gets the same answer, one that arrives late does nothing. */
  'timed-settle': {
    keys: (k: {
      /** key -> server time from which it may be taken */ readonly due: string;
      /** key -> 'created failures payload' */ readonly tasks: string;
      /** key -> 'token at ends.ms after' */ readonly leases: string;
      /** when a length was last given */ readonly clock: string;
      /** what was discarded, the oldest first */ readonly failures: string;
      /** what this caller was answered last; goes by itself */ readonly caller: string;
    }): string[] => [k.due, k.tasks, k.leases, k.clock, k.failures, k.caller],
    args: (a: {
      /** of this call */ readonly number: number;
      /** how long the caller is remembered */ readonly rememberMs: number;
      /** shard channel of those who wait for something to be due */ readonly channel: string;
      /** how many of the discarded are kept; the oldest go */ readonly keepFailures: number;
      /**  done: the key goes, or is due at the time to which it was moved meanwhile retry: it is due at value (a time, or '+ms') with one failure more, or as it was put meanwhile back: it is due at its own time, as if it had not been taken discard: it goes to the failures, with value as its message keep: the lease ends value ms from now remove: removes the key, whichever taker has it; with token '' */ readonly outcomes: readonly { readonly key: string; readonly token: string; readonly verb: string; readonly value: Argument; }[];
    }): Argument[] => [a.number, a.rememberMs, a.channel, a.keepFailures, ...a.outcomes.flatMap((e) => [e.key, e.token, e.verb, e.value])],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'settled'; readonly verdicts: readonly string[]; }
      | { readonly verdict: 'late'; }
    {
      switch (r[0]) {
        case 'settled':
          return { verdict: 'settled', verdicts: r.slice(1) as string[] };
        case 'late':
          return { verdict: 'late' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Takes what is due in a timed set, at most `count`, in due order, under a lease that ends by itself; no more than about a mebibyte, in which a key counts three times and 2,500 more, but one in any case. `number` counts the takes of one taker upwards, one at a time: a take that arrives twice gets the same keys, and one that arrives late takes nothing. If the queue has a condition, the text of that function replaces the `nil` of `granting`: it answers how many keys may be taken now. */
  'timed-take': {
    keys: (k: {
      /** key -> server time from which it may be taken */ readonly due: string;
      /** key -> 'created failures payload' */ readonly tasks: string;
      /** key -> 'token at ends.ms after' */ readonly leases: string;
      /** when a length was last given; how far the times ahead have been gone through */ readonly clock: string;
      /** what this taker was answered last; goes by itself */ readonly taker: string;
      /** keys of the condition */ readonly conditionKeys: readonly string[];
    }): string[] => [k.due, k.tasks, k.leases, k.clock, k.taker, ...k.conditionKeys],
    args: (a: {
      /** of the taker, without spaces */ readonly name: string;
      /** of this call */ readonly number: number;
      /** at most so many */ readonly count: number;
      /** how long the lease lasts */ readonly leaseMs: number;
      /** how long the taker is remembered beyond the lease */ readonly rememberMs: number;
    }): Argument[] => [a.name, a.number, a.count, a.leaseMs, a.rememberMs],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'taken'; readonly now: number; readonly next: number; readonly ends: number; readonly keys: readonly { readonly key: string; readonly task: string; readonly at: number }[]; }
      | { readonly verdict: 'refused'; readonly message: string; }
      | { readonly verdict: 'late'; readonly number: number; }
    {
      switch (r[0]) {
        case 'taken':
          return { verdict: 'taken', now: Number(r[1]), next: Number(r[2]), ends: Number(r[3]), keys: groupsIn(r, 4, 3, (flat, i) => ({ key: textIn(flat[i + 0]), task: textIn(flat[i + 1]), at: Number(flat[i + 2]) })) };
        case 'refused':
          return { verdict: 'refused', message: textIn(r[1]) };
        case 'late':
          return { verdict: 'late', number: Number(r[1]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Unlinks what is kept of a large request when its retention has ended, before it would expire: the server frees unlinked data in the background, but expired data in the middle of its work. */
  'unlink-spent': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** index -> error; 'index:payload' -> payload */ readonly failed: string;
      /** outcomes in the order of settling */ readonly results: string;
    }): string[] => [k.request, k.failed, k.results],
    args: (a: {
      /** that has ended */ readonly generation: number;
    }): Argument[] => [a.generation],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'unlinked'; }
      | { readonly verdict: 'kept'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'unlinked':
          return { verdict: 'unlinked' };
        case 'kept':
          return { verdict: 'kept' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Changes an unfinished request, pauses it or resumes it. A raised limit mints tokens; a lowered one grants nothing until running work is below it, and every settle answers how many permits are left. While a request is paused, no permit is granted and no token minted. What runs may end; a worker keeps only the permits of running handlers. A changed priority abandons the tokens in the old list. The epoch makes a step of two, so that they belong to neither of the two epochs that count: they die at `enter`, and what the queue side has marked of them means nothing here. The missing tokens are minted into the new list. */
  'update': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
    }): string[] => [k.request, k.work, k.due],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** the new one, or '' to leave it */ readonly limit?: number | undefined;
      /** the new one, or '' to leave it */ readonly priority?: number | undefined;
      /** the new one as `create` keeps it, or '' to leave it */ readonly toleratedFailures: string;
      /** 1: pauses it; 0: resumes it; '' to leave it */ readonly paused?: number | undefined;
    }): Argument[] => [a.generation, a.limit ?? '', a.priority ?? '', a.toleratedFailures, a.paused ?? ''],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly mint: number; readonly epoch: number; readonly priority: string; }
      | { readonly verdict: 'cancelling'; }
      | { readonly verdict: 'complete'; readonly outcome: 'succeeded' | 'failed' | 'cancelled'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', mint: Number(r[1]), epoch: Number(r[2]), priority: textIn(r[3]) };
        case 'cancelling':
          return { verdict: 'cancelling' };
        case 'complete':
          return { verdict: 'complete', outcome: r[1] as 'succeeded' | 'failed' | 'cancelled' };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Ends a tend on the queue side. First it pushes, in any case, what the tend minted. Then, if the claim is still the same, it puts the request to sleep until its tokens are popped or until its next time. */
  'write-back': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** id -> time of its next attention; 'id~' -> until when it is tended for a change */ readonly agenda: string;
      /** id -> priority * 2^44 + mark; (100 + priority) * 2^44 + due */ readonly wait: string;
      /** id -> 'epoch' or 'epoch:passedAt' */ readonly marks: string;
      /** priority -> tokens ever pushed to its list */ readonly pushed: string;
      /** id -> 'generation task' */ readonly parked: string;
      /** 'task\0id' of those, all of score 0 */ readonly parkedByTask: string;
      /** tokens of the request's priority; with due, its lane */ readonly list: string;
    }): string[] => [k.open, k.agenda, k.wait, k.marks, k.pushed, k.parked, k.parkedByTask, k.list],
    args: (a: {
      /** of the request */ readonly id: string;
      /** of the request */ readonly generation: number;
      /** what the tick answered */ readonly claim: number;
      /** tokens to push */ readonly mint: number;
      /** in which they were counted */ readonly epoch: number;
      /** of the request */ readonly priority: number;
      /** epoch whose tokens are still out, or '' */ readonly before: string;
      /** time of the next tend, or 0 */ readonly next: number;
      /** '+' and the task when the request is parked, or '' */ readonly parkedTask: string;
      /** from a token's pop to its enter at the latest */ readonly graceMs: number;
      /** until a request that has neither a time nor tokens is tended in any case; longer when the agenda is so long that more than atATime would be tended in slowMs */ readonly slowMs: number;
      /** of such requests, in slowMs */ readonly atATime: number;
      /** when it was due, of one that is expedited; left out: it is not */ readonly due?: number | undefined;
      /** shard channel of the queue's workers, with due */ readonly channel?: string | undefined;
    }): Argument[] => [a.id, a.generation, a.claim, a.mint, a.epoch, a.priority, a.before, a.next, a.parkedTask, a.graceMs, a.slowMs, a.atATime, ...(a.due === undefined ? [] : [a.due]), ...(a.channel === undefined ? [] : [a.channel])],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly next: number; }
      | { readonly verdict: 'moved'; }
      | { readonly verdict: 'closed'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', next: Number(r[1]) };
        case 'moved':
          return { verdict: 'moved' };
        case 'closed':
          return { verdict: 'closed' };
        default:
          throw unknownReply(r);
      }
    },
  },
} as const;
