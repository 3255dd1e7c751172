// Written by scripts/build-lua.mjs from the headers in lua/. DO NOT EDIT: run `npm run lua`.
import type { Argument } from '../redis/client.js';
import {
  groupsIn,
  numberIn,
  optionalText,
  pairsIn,
  type StreamRow,
  textIn,
  unknownReply,
} from './script-values.js';

export const calls = {
  /** Adds sub-requests to an open request and mints the tokens that they need. A producer numbers its own items from 0; `first` makes a chunk that is sent twice, or overlaps one that was, add nothing twice. Several producers may append: each has its own numbering, and the index of a sub-request is the order in which the server took it. */
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
  /** Cancels a request: what nobody runs at once, what runs keeps its outcome if it succeeds. */
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
  /** Notes why a worker will not renew its lease, for the error of whatever fails by that crash: whoever saw its process end says so, or a thread beside an event loop that stands still. Once the process has ended, its handlers have too, and the lease is over at once. */
  'cause': {
    keys: (k: {
      /** state of the request */ readonly request: string;
    }): string[] => [k.request],
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
  /** Whether a worker at the end of its time slice should leave: somebody of a higher priority waits, or of the same one, that is not this request. A request has at most about 32 tokens outstanding, so 33 tokens at the end where they are popped decide. One that is expedited makes way for a higher priority, and for one of its own that was due before it. */
  'contended': {
    keys: (k: {
      /** tokens of the priorities 0 up to that of the request, highest priority first, lanes that are known to be used among them; of one that is expedited, up to its lane */ readonly lists: readonly string[];
    }): string[] => [...k.lists],
    args: (a: {
      /** of the request that the worker holds */ readonly id: string;
      /** of the request, with due */ readonly generation?: number | undefined;
      /** when it was due, of one that is expedited; left out: it is not */ readonly due?: number | undefined;
    }): Argument[] => [a.id, ...(a.generation === undefined ? [] : [a.generation]), ...(a.due === undefined ? [] : [a.due])],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'keep'; }
      | { readonly verdict: 'leave'; }
    {
      switch (r[0]) {
        case 'keep':
          return { verdict: 'keep' };
        case 'leave':
          return { verdict: 'leave' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Brings a request into being: its state and the empty stream of its sub-requests. */
  'create': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests; group 'workers' */ readonly work: string;
    }): string[] => [k.request, k.work],
    args: (a: {
      /** from intent */ readonly generation: number;
      /** name of this submission; tells a repetition from another submitter */ readonly owner: string;
      /** a create older than this is refused, as its tombstone may be gone */ readonly windowMs: number;
      /** how long the producer is believed without a sign of life */ readonly leaseMs: number;
      /** field, value, … of the options. Two are lengths, and what ends with them is kept too: delayMs until heldUntil, deadlineMs until deadline. With expedite, priority becomes 'priority~due', which every reply hands on */ readonly fields: readonly Argument[];
    }): Argument[] => [a.generation, a.owner, a.windowMs, a.leaseMs, ...a.fields],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'created'; readonly look: number; }
      | { readonly verdict: 'exists'; readonly status: string; readonly generation: number; readonly digest: string; readonly sealedBy: string; readonly sent: number; readonly total: number; }
      | { readonly verdict: 'void'; readonly above: number; }
    {
      switch (r[0]) {
        case 'created':
          return { verdict: 'created', look: Number(r[1]) };
        case 'exists':
          return { verdict: 'exists', status: textIn(r[1]), generation: Number(r[2]), digest: textIn(r[3]), sealedBy: textIn(r[4]), sent: Number(r[5]), total: Number(r[6]) };
        case 'void':
          return { verdict: 'void', above: Number(r[1]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Strikes a worker out of the registry when it closes. */
  'depart': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** boot id -> time of its last sign of life */ readonly workers: string;
      /** boot id -> JSON */ readonly workerInfo: string;
      /** id -> time of its end */ readonly history: string;
      /** counts of this queue */ readonly counters: string;
      /** the last errors */ readonly errors: string;
      /** priority -> tokens ever pushed to its list */ readonly pushed: string;
      /** id -> 'generation task' */ readonly parked: string;
      /** 'task\0id' of those, all of score 0 */ readonly parkedByTask: string;
      /** all token lists, and the lanes that `lanes` names */ readonly lists: readonly string[];
    }): string[] => [k.open, k.workers, k.workerInfo, k.history, k.counters, k.errors, k.pushed, k.parked, k.parkedByTask, ...k.lists],
    args: (a: {
      /** boot id */ readonly worker: string;
      /** what an earlier call answered, or '' */ readonly lanes: string;
    }): Argument[] => [a.worker, a.lanes],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'departed'; readonly lanes: string; }
    {
      switch (r[0]) {
        case 'departed':
          return { verdict: 'departed', lanes: textIn(r[1]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Removes everything of one life of a request, whatever its state, but a short-lived tombstone that tells waiters and late calls. Workers that run its sub-requests learn it at their next call. A drop that comes late leaves the next life of the id alone. */
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
      /** of the life that is to go */ readonly generation: number;
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
  /** Turns tokens into permits: up to as many as the worker has free slots and the limit leaves. Where they are as good as all that is ready, and few, it reads for them too: a small request is then taken in one call, as far as it is no more than about a mebibyte. `op` numbers the enters, takes and settles of one worker process upwards, in the order of sending, so that a call that arrives twice or late grants nothing; the number outlives the leave. `answered` tells a server that lost writes (lib/forgotten). */
  'enter': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
    }): string[] => [k.request, k.work, k.due],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** boot id of the worker process */ readonly worker: string;
      /** number of this call */ readonly op: number;
      /** free slots */ readonly want: number;
      /** how long the permits last without a settle or renew */ readonly leaseMs: number;
      /** ' name name ' of the tasks that the worker serves, or '*' for all */ readonly tasks: string;
      /** sub-requests that it may read here */ readonly most: number;
      /** number of its last call for this request that was answered; 0: none */ readonly answered: number;
      /** one for each token that brought the worker here */ readonly epochs: readonly string[];
    }): Argument[] => [a.generation, a.worker, a.op, a.want, a.leaseMs, a.tasks, a.most, a.answered, ...a.epochs],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly permits: number; readonly mint: number; readonly epoch: number; readonly priority: string; readonly dueNow: number; readonly task: string; readonly attempts: number; readonly ends: number; readonly since: string; readonly ready: number; readonly policy: string; readonly entries: readonly { readonly entry: string; readonly payload: string }[]; }
      | { readonly verdict: 'unserved'; readonly task: string; readonly priority: string; }
      | { readonly verdict: 'complete'; readonly outcome: 'succeeded' | 'failed' | 'cancelled'; readonly spentAt?: number | undefined; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', permits: Number(r[1]), mint: Number(r[2]), epoch: Number(r[3]), priority: textIn(r[4]), dueNow: Number(r[5]), task: textIn(r[6]), attempts: Number(r[7]), ends: Number(r[8]), since: textIn(r[9]), ready: Number(r[10]), policy: textIn(r[11]), entries: groupsIn(r, 12, 2, (flat, i) => ({ entry: textIn(flat[i + 0]), payload: textIn(flat[i + 1]) })) };
        case 'unserved':
          return { verdict: 'unserved', task: textIn(r[1]), priority: textIn(r[2]) };
        case 'complete':
          return { verdict: 'complete', outcome: r[1] as 'succeeded' | 'failed' | 'cancelled', spentAt: numberIn(r[2]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Takes a request that ended off the queue side. Gated by generation, so that it happens once and never to the next life of the id. */
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
      /** 'id~generation' -> when to unlink what is kept of it, of those that keep much */ readonly spent: string;
      /** all token lists, and the lanes that `lanes` names */ readonly lists: readonly string[];
    }): string[] => [k.open, k.agenda, k.wait, k.marks, k.parked, k.parkedByTask, k.pushed, k.counters, k.history, k.errors, k.workers, k.workerInfo, k.spent, ...k.lists],
    args: (a: {
      /** of the request */ readonly id: string;
      /** of the request */ readonly generation: number;
      /** 'succeeded', 'failed', 'cancelled': remembered; 'dropped', 'gone': forgotten */ readonly outcome: string;
      /** how long an ended id is remembered */ readonly historyMs: number;
      /** how many are remembered */ readonly historyMax: number;
      /** server time at which to unlink what it keeps; 0: it goes by itself */ readonly spentAt: number;
      /** what an earlier call answered, or '' */ readonly lanes: string;
    }): Argument[] => [a.id, a.generation, a.outcome, a.historyMs, a.historyMax, a.spentAt, a.lanes],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'finished'; readonly lanes: string; }
      | { readonly verdict: 'closed'; readonly lanes: string; }
    {
      switch (r[0]) {
        case 'finished':
          return { verdict: 'finished', lanes: textIn(r[1]) };
        case 'closed':
          return { verdict: 'closed', lanes: textIn(r[1]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Holds a request back: until then no permit is granted, no token minted and nothing read of it; what runs goes on. A longer hold that is there already stays. */
  'hold': {
    keys: (k: {
      /** state of the request */ readonly request: string;
    }): string[] => [k.request],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** for how long from here */ readonly holdMs: number;
    }): Argument[] => [a.generation, a.holdMs],
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
  /** Adds ids to a queue of ids, behind those that are pending. A sender numbers its chunks upwards and sends one after the other, so that a chunk that arrives twice, or late, adds nothing twice. Where the chunk before it is missing, the server lost it, and the sender goes on from there. */
  'id-add': {
    keys: (k: {
      /** of the queue */ readonly state: string;
      /** ids; pushed right, popped left */ readonly pending: string;
      /** of a unique queue: ids that are pending or running */ readonly known: string;
      /** sender -> time until which the number of its last chunk is kept */ readonly senders: string;
    }): string[] => [k.state, k.pending, k.known, k.senders],
    args: (a: {
      /** of the queue */ readonly life: string;
      /** who adds */ readonly sender: string;
      /** of this chunk */ readonly number: number;
      /** for how long its number is kept from here: longer than a call may be late */ readonly keepMs: number;
      /** number of the first chunk of the same add */ readonly first: number;
      /** at most 500 */ readonly ids: readonly string[];
    }): Argument[] => [a.life, a.sender, a.number, a.keepMs, a.first, ...a.ids],
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
  /** Removes a queue of ids with all that it holds. */
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
      /** of the queue */ readonly life: string;
    }): Argument[] => [a.life],
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
  /** Shows the counts of a queue of ids at one moment, and some of its latest failures. */
  'id-inspect': {
    keys: (k: {
      /** of the queue */ readonly state: string;
      /** ids */ readonly pending: string;
      /** number -> time at which its time runs out */ readonly running: string;
      /** the latest 100 failures, newest left: id, key, message, time of each */ readonly failed: string;
    }): string[] => [k.state, k.pending, k.running, k.failed],
    args: (a: {
      /** of the queue */ readonly life: string;
      /** of the failures that are wanted; 0 is the latest */ readonly first: number;
      /** how many; 0: none */ readonly count: number;
    }): Argument[] => [a.life, a.first, a.count],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly pending: number; readonly running: number; readonly completed: number; readonly failures: number; readonly failed: readonly { readonly id: string; readonly key: string; readonly message: string; readonly at: number }[]; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', pending: Number(r[1]), running: Number(r[2]), completed: Number(r[3]), failures: Number(r[4]), failed: groupsIn(r[5], 0, 4, (flat, i) => ({ id: textIn(flat[i + 0]), key: textIn(flat[i + 1]), message: textIn(flat[i + 2]), at: Number(flat[i + 3]) })) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Joins the queue of ids of this name, or creates it. `life` tells one from a later one of the name. */
  'id-join': {
    keys: (k: {
      /** of the queue: life, options, counters, number of the last add of each sender */ readonly state: string;
    }): string[] => [k.state],
    args: (a: {
      /** of the queue, if this creates it */ readonly life: string;
      /** how long a task may be in one hand; '' when the caller takes what is there */ readonly timeoutMs?: number | undefined;
      /** 1: an id is one task while it is pending or running; '' as above */ readonly unique?: number | undefined;
      /** timeoutMs of one that is created without */ readonly defaultMs: number;
    }): Argument[] => [a.life, a.timeoutMs ?? '', a.unique ?? '', a.defaultMs],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'joined'; readonly life: string; readonly timeoutMs: number; readonly unique: number; }
      | { readonly verdict: 'differs'; readonly timeoutMs: number; readonly unique: number; }
    {
      switch (r[0]) {
        case 'joined':
          return { verdict: 'joined', life: textIn(r[1]), timeoutMs: Number(r[2]), unique: Number(r[3]) };
        case 'differs':
          return { verdict: 'differs', timeoutMs: Number(r[1]), unique: Number(r[2]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Hands out the next task of a queue of ids, or says why there is none. Pending ones first, in order; else one whose time ran out, which the caller may resume. One that is overdue by another whole timeout is offered before pending ones, once per timeout, so that endless adds do not starve it. The number of a task is its place in the order of adding, given when it is popped. A server that lost its last writes gives it to another id: the attempts of a task count from a number that its caller drew. */
  'id-pull': {
    keys: (k: {
      /** of the queue */ readonly state: string;
      /** ids; pushed right, popped left */ readonly pending: string;
      /** number -> time at which its time runs out, or at which it was last offered after that */ readonly running: string;
      /** number -> 'attempt:stamp:id' of those that run or ran out */ readonly tasks: string;
    }): string[] => [k.state, k.pending, k.running, k.tasks],
    args: (a: {
      /** of the queue */ readonly life: string;
      /** number of the first attempt: 32 · a number that the caller drew anew, + 1 */ readonly first: number;
    }): Argument[] => [a.life, a.first],
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
  /** Takes over a task whose time ran out. A compare-and-set on its attempt: of all who were offered the same attempt exactly one gets it. */
  'id-resume': {
    keys: (k: {
      /** of the queue */ readonly state: string;
      /** number -> time at which its time runs out, or at which it was last offered after that */ readonly running: string;
      /** number -> 'attempt:stamp:id' */ readonly tasks: string;
    }): string[] => [k.state, k.running, k.tasks],
    args: (a: {
      /** of the queue */ readonly life: string;
      /** of the task */ readonly number: number;
      /** that ran out */ readonly attempt: number;
    }): Argument[] => [a.life, a.number, a.attempt],
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
  /** Ends a task of a queue of ids. A success counts from any attempt there was, as long as the task is there; a failure from the current attempt only. Either counts once. Attempts of one task lie in one block of 32 (id-pull); those of another block are of a task that the server forgot, and gave the number of to another id. */
  'id-settle': {
    keys: (k: {
      /** of the queue */ readonly state: string;
      /** number -> time at which its time runs out */ readonly running: string;
      /** number -> 'attempt:stamp:id' */ readonly tasks: string;
      /** of a unique queue: ids that are pending or running */ readonly known: string;
      /** the latest 100 failures, newest left: id, key, message, time of each */ readonly failed: string;
    }): string[] => [k.state, k.running, k.tasks, k.known, k.failed],
    args: (a: {
      /** of the queue */ readonly life: string;
      /** of the task */ readonly number: number;
      /** that reports */ readonly attempt: number;
      /** 's' success, 'f' failure */ readonly kind: string;
      /** of the failure */ readonly message: string;
    }): Argument[] => [a.life, a.number, a.attempt, a.kind, a.message],
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
  /** Opens an id on the queue side before anything exists on the request side, so that whatever a dying producer leaves behind is found by the agenda. */
  'intent': {
    keys: (k: {
      /** id -> generation of every open request */ readonly open: string;
      /** id -> time of its next attention */ readonly agenda: string;
      /** counts of this queue; 'generation': none is given out that is lower; 'openedAt': the latest time by which an id was opened, so that a tick sees that the clock went back since */ readonly counters: string;
    }): string[] => [k.open, k.agenda, k.counters],
    args: (a: {
      /** of the request */ readonly id: string;
      /** until the first tend looks whether the request came into being */ readonly graceMs: number;
      /** a queue that nobody uses for so long forgets its counts */ readonly idleMs: number;
      /** the generation is greater than this one, which the request side knows; 0: it knows none */ readonly above: number;
    }): Argument[] => [a.id, a.graceMs, a.idleMs, a.above],
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
  /** Renews the lease of the producers of an open request. */
  'keep-open': {
    keys: (k: {
      /** state of the request */ readonly request: string;
    }): string[] => [k.request],
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
  /** Brings the next attention of a request forward, as when a worker knows when its next retry is due. */
  'note': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** id -> time of its next attention */ readonly agenda: string;
    }): string[] => [k.open, k.agenda],
    args: (a: {
      /** of the request */ readonly id: string;
      /** of the request */ readonly generation: number;
      /** when to look, server time in ms; 0: now */ readonly time: number;
    }): Argument[] => [a.id, a.generation, a.time],
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
  /** Notes that a worker met a request whose task it does not serve. A worker that serves the task finds it here at its next tick and enters without a token. */
  'park': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** id -> time of its next attention */ readonly agenda: string;
      /** id -> 'generation task' */ readonly parked: string;
      /** 'task\0id' of those, all of score 0 */ readonly parkedByTask: string;
    }): string[] => [k.open, k.agenda, k.parked, k.parkedByTask],
    args: (a: {
      /** of the request */ readonly id: string;
      /** of the request */ readonly generation: number;
      /** its task, perhaps empty */ readonly task: string;
      /** until it is looked at in any case */ readonly slowMs: number;
    }): Argument[] => [a.id, a.generation, a.task, a.slowMs],
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
  /** Pauses a request: no permit is granted and no token minted from here on. What runs may end; a worker keeps no more permits than that, as it learns with its next settle. */
  'pause': {
    keys: (k: {
      /** state of the request */ readonly request: string;
    }): string[] => [k.request],
    args: (a: {
      /** of the request */ readonly generation: number;
    }): Argument[] => [a.generation],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'paused'; }
      | { readonly verdict: 'cancelling'; }
      | { readonly verdict: 'complete'; readonly outcome: 'succeeded' | 'failed' | 'cancelled'; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'paused':
          return { verdict: 'paused' };
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
  /** Pauses a queue, for good or for a time: its workers take no more tokens and leave what they hold as their handlers end. They hear it by the message, at the latest with their next tick. */
  'pause-queue': {
    keys: (k: {
      /** until: when the pause ends by itself, 0: never; length: 'until ms', for how long it is meant */ readonly paused: string;
    }): string[] => [k.paused],
    args: (a: {
      /** how long from here; 0: until `resume-queue` */ readonly forMs: number;
      /** shard channel on which the workers of the queue are told */ readonly channel: string;
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
  /** Reads records of the results stream, no more than about a megabyte of them, but at least one. How long they are is not known before, so as many are read at a time as may be had of the longest that was ever written. */
  'read-results': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** outcomes in the order of settling */ readonly results: string;
    }): string[] => [k.request, k.results],
    args: (a: {
      /** where to begin, as XRANGE has it */ readonly from: string;
      /** where to end */ readonly to: string;
      /** how many at most */ readonly count: number;
    }): Argument[] => [a.from, a.to, a.count],
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
  /** Opens the next life of a request that is complete, in which failed sub-requests run again. It is open under a producer lease, like one whose items are still coming: `run-again` moves them in, `seal` ends that, and so does the end of the lease. What succeeded stays, and so do its results. */
  'redrive': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests; group 'workers' */ readonly work: string;
      /** index -> error; 'index:payload' -> payload */ readonly failed: string;
      /** outcomes in the order of settling */ readonly results: string;
    }): string[] => [k.request, k.work, k.failed, k.results],
    args: (a: {
      /** of the new life, from intent */ readonly generation: number;
      /** who redrives; tells a repetition from somebody else's redrive */ readonly owner: string;
      /** how long the owner is believed without a sign of life */ readonly leaseMs: number;
      /** where to go on with what workers left, from the reply before; '0' at first; '': all of it now */ readonly clearing: string;
    }): Argument[] => [a.generation, a.owner, a.leaseMs, a.clearing],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'opened'; readonly sealedBy: string; readonly sent: number; }
      | { readonly verdict: 'clearing'; readonly from: string; }
      | { readonly verdict: 'exists'; readonly status: string; readonly generation: number; }
      | { readonly verdict: 'void'; readonly above: number; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'opened':
          return { verdict: 'opened', sealedBy: textIn(r[1]), sent: Number(r[2]) };
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
  /** Extends the lease of the permits that a worker holds, and keeps what its handlers reported. Never brings permits back that were withdrawn, and keeps no checkpoint of what is somebody else's by now. */
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
  /** Opens the id of a living request again when the queue side does not know it any more, as after the server lost its last writes: nothing would ever look at the request otherwise. */
  'reopen': {
    keys: (k: {
      /** id -> generation of every open request */ readonly open: string;
      /** id -> time of its next attention */ readonly agenda: string;
      /** counts of this queue; 'generation' is the last one given out; 'openedAt' as in `intent` */ readonly counters: string;
    }): string[] => [k.open, k.agenda, k.counters],
    args: (a: {
      /** of the request */ readonly id: string;
      /** of the life that the request side holds */ readonly generation: number;
      /** a queue that nobody uses for so long forgets its counts */ readonly idleMs: number;
      /** of an intent that the request side refused because of this life, which takes its place; 0: none */ readonly instead: number;
    }): Argument[] => [a.id, a.generation, a.idleMs, a.instead],
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
  /** Lets a paused request go on, and mints the tokens that are missing. */
  'resume': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
    }): string[] => [k.request, k.work, k.due],
    args: (a: {
      /** of the request */ readonly generation: number;
    }): Argument[] => [a.generation],
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
  /** Ends the pause of a queue, whoever began it. */
  'resume-queue': {
    keys: (k: {
      /** until: when the pause ends by itself, 0: never */ readonly paused: string;
    }): string[] => [k.paused],
    args: (a: {
      /** shard channel on which the workers of the queue are told */ readonly channel: string;
    }): Argument[] => [a.channel],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'resumed'; }
    {
      switch (r[0]) {
        case 'resumed':
          return { verdict: 'resumed' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Moves failed sub-requests into the life that `redrive` opened: each is ready again under its index, with no attempt behind it, and does not count as failed any more. Indexes rise, from call to call too; what is not failed, or failed anew in this life, is passed over. */
  'run-again': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
      /** index -> error; 'index:payload' -> payload; 'index:runs' -> 'generation …' */ readonly failed: string;
    }): string[] => [k.request, k.work, k.due, k.failed],
    args: (a: {
      /** of the new life */ readonly generation: number;
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
  /** Notes that suspects, sub-requests whose next crash may be their last, are about to run, and that nothing else runs in this process. How many they are in all is kept of each: when they crash, the next company is smaller. Only the crash of what ran alone is held against it for good. */
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
      /** how many items this producer has appended, all told */ readonly sent: number;
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
  /** Gives sub-requests their outcome, keeps or returns permits, completes the request. The one hot script: it takes everything that a worker finished for this request in one turn, and reads new ones for the permits that are left without a handler. At most 1,000 outcomes a call. First the successes, the many: the entry of each, with all their results in one text, as they are recorded (lib/outcomes). Then all others, four arguments each: index, kind, value, number.   'f' failure  value: error                       number: delayMs before the next attempt, if any is left; -1: none is to be   'b' back     read or started, but not finished  value, number: unused `keep` is the number of permits that the worker means to hold, absolute, so that a call that arrives twice frees nothing twice; it is never below `running`, the handlers that still run. `op` numbers the enters, takes and settles of one worker process upwards, in the order of sending: of a call that arrives after a later one only the successes count, and it reads nothing. A worker that has held permits without a gap since it read what it reports still has all of it: entries are taken from those without a permit only. `since` says which hold that was; if it is the one that lasts, the successes are acknowledged together. Otherwise each is asked for on its own, and so it is once a worker without a permit succeeded with what another one had by then, or this server lost writes that a worker was told of (`contested`). */
  'settle': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** its sub-requests */ readonly work: string;
      /** delayed and returned sub-requests */ readonly due: string;
      /** index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker */ readonly tries: string;
      /** index -> what its handler last reported */ readonly progress: string;
      /** index -> error; 'index:payload' -> payload */ readonly failed: string;
      /** outcomes in the order of settling: ok, results or !index, attempts */ readonly results: string;
    }): string[] => [k.request, k.work, k.due, k.tries, k.progress, k.failed, k.results],
    args: (a: {
      /** of the request */ readonly generation: number;
      /** boot id of the worker process */ readonly worker: string;
      /** number of this call; '' when none of this worker can come late */ readonly op?: number | undefined;
      /** how long the permits last from here */ readonly leaseMs: number;
      /** permits to hold */ readonly keep: number;
      /** handlers still running */ readonly running: number;
      /** shard channel of the request */ readonly channel: string;
      /** how many there are */ readonly successes: number;
      /** number of the hold under which they were read, from enter; '' when unsure */ readonly since: string;
      /** greatest index among all outcomes; -1: there are none */ readonly newest: number;
      /** RS, index, space, result of each success, in their order; '' when none are kept */ readonly values: string;
      /** sub-requests to read; never more than permits are left without a handler, nor than about a mebibyte of them */ readonly read: number;
      /** number of this worker's last call for the request that was answered; 0: none */ readonly answered: number;
      /** one for each success, then four for each other */ readonly outcomes: readonly Argument[];
    }): Argument[] => [a.generation, a.worker, a.op ?? '', a.leaseMs, a.keep, a.running, a.channel, a.successes, a.since, a.newest, a.values, a.read, a.answered, ...a.outcomes],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly permits: number; readonly mint: number; readonly epoch: number; readonly priority: string; readonly dueNow: number; readonly nextDue: number; readonly cancelling: number; readonly entries: unknown; readonly cut: number; }
      | { readonly verdict: 'complete'; readonly outcome: 'succeeded' | 'failed' | 'cancelled'; readonly spentAt?: number | undefined; }
      | { readonly verdict: 'gone'; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', permits: Number(r[1]), mint: Number(r[2]), epoch: Number(r[3]), priority: textIn(r[4]), dueNow: Number(r[5]), nextDue: Number(r[6]), cancelling: Number(r[7]), entries: r[8] as unknown, cut: Number(r[9]) };
        case 'complete':
          return { verdict: 'complete', outcome: r[1] as 'succeeded' | 'failed' | 'cancelled', spentAt: numberIn(r[2]) };
        case 'gone':
          return { verdict: 'gone' };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Returns the tokens of a request that a worker left and takes the next ones, in one call. */
  'swap': {
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
      | { readonly verdict: 'swapped'; readonly tokens: readonly string[]; }
      | { readonly verdict: 'closed'; readonly tokens: readonly string[]; }
    {
      switch (r[0]) {
        case 'swapped':
          return { verdict: 'swapped', tokens: r.slice(1) as string[] };
        case 'closed':
          return { verdict: 'closed', tokens: r.slice(1) as string[] };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Takes due work (returned, reclaimed, retried) out of `due` for a worker that holds permits: at most 250, and no more than about a mebibyte of payloads, but one in any case. `op` numbers the calls of one worker process upwards, as in enter and settle: one that arrives twice takes nothing. `answered` as for `enter`: a server that lost this take, or what went before it, is found out. */
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
  /** What a tick does to one request: withdraws expired permits, reclaims what any consumer without a permit holds (and counts the crash, if its lease ended), follows up a lost producer and the deadline, audits the tokens and mints those that are missing, finishes what a crash left half done, and says when to look again. */
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
      /** until the next look at a request that workers hold */ readonly auditMs: number;
      /** how long a voided generation is remembered */ readonly tombstoneMs: number;
      /** when Redis was last back after it had been away; 0: never */ readonly resumedAt: number;
      /** when the tick claimed it; 0: not known */ readonly tickedAt: number;
      /** when that is so long ago, Redis was away in between, for all this look knows */ readonly awayMs: number;
      /** when a gap between two ticks ended … */ readonly gapAt: number;
      /** … and how long it was: who has a shorter lease could not renew it */ readonly gapMs: number;
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
  /** One look at the agenda: notes which requests have had all their earlier tokens popped, and claims the ids that are due by moving their time ahead. A claimer that dies simply fires again. A worker says with it that it lives. */
  'tick': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** id -> time of its next attention */ readonly agenda: string;
      /** id -> priority * 2^44 + mark: asleep until its list has been popped up to mark; (100 + priority) * 2^44 + due: until what is due before it has left its lane */ readonly wait: string;
      /** id -> 'epoch' or 'epoch:passedAt' */ readonly marks: string;
      /** priority -> tokens ever pushed to its list */ readonly pushed: string;
      /** id -> 'generation task' */ readonly parked: string;
      /** 'task\0id' of those, all of score 0 */ readonly parkedByTask: string;
      /** boot id -> time of its last sign of life */ readonly workers: string;
      /** boot id -> JSON */ readonly workerInfo: string;
      /** time of the last tick; when Redis was last back after it had been away; the longest gap between two ticks that still matters; the latest time by which an id was opened; how far the agenda is shifted */ readonly counters: string;
      /** 'id~generation' -> when to unlink what is kept of it, of those that keep much */ readonly spent: string;
      /** until: when the pause of the queue ends by itself, 0: never; length: 'until ms' */ readonly paused: string;
      /** tokens of the priorities 0 … 99, and the lanes that `lanes` names */ readonly lists: readonly string[];
    }): string[] => [k.open, k.agenda, k.wait, k.marks, k.pushed, k.parked, k.parkedByTask, k.workers, k.workerInfo, k.counters, k.spent, k.paused, ...k.lists],
    args: (a: {
      /** boot id, or '' when a producer or notifier ticks */ readonly worker: string;
      /** JSON about the worker */ readonly info: string;
      /** how long a claim lasts */ readonly lockMs: number;
      /** from a token's pop to its enter at the latest */ readonly graceMs: number;
      /** how many to claim at most */ readonly max: number;
      /** a worker without a sign of life for so long is struck out */ readonly goneMs: number;
      /** when nobody ticked for so long, Redis was away … */ readonly awayMs: number;
      /** … or for so long times the number of workers */ readonly awayPerWorkerMs: number;
      /** priorities whose lanes are among the lists, '5,50', or '' */ readonly lanes: string;
      /** ' name name ' of the tasks whose parked requests are wanted, '*' for all, '' for none */ readonly tasks: string;
      /** entry of the index behind which to go on with the first of them, or '' */ readonly after: string;
      /** how many parked requests to answer at most */ readonly maxParked: number;
    }): Argument[] => [a.worker, a.info, a.lockMs, a.graceMs, a.max, a.goneMs, a.awayMs, a.awayPerWorkerMs, a.lanes, a.tasks, a.after, a.maxParked],
    reply(r: readonly unknown[]):
      | { readonly verdict: 'ok'; readonly now: number; readonly next: number; readonly fleet: number; readonly claims: readonly { readonly id: string; readonly generation: number; readonly passed: string; readonly claim: number }[]; readonly parked: readonly { readonly id: string; readonly life: string }[]; readonly resumedAt: number; readonly pausedUntil: number; readonly lanes: string; readonly after: string; readonly spent: readonly string[]; readonly gapAt: number; readonly gapMs: number; }
    {
      switch (r[0]) {
        case 'ok':
          return { verdict: 'ok', now: Number(r[1]), next: Number(r[2]), fleet: Number(r[3]), claims: groupsIn(r[4], 0, 4, (flat, i) => ({ id: textIn(flat[i + 0]), generation: Number(flat[i + 1]), passed: textIn(flat[i + 2]), claim: Number(flat[i + 3]) })), parked: groupsIn(r[5], 0, 2, (flat, i) => ({ id: textIn(flat[i + 0]), life: textIn(flat[i + 1]) })), resumedAt: Number(r[6]), pausedUntil: Number(r[7]), lanes: textIn(r[8]), after: textIn(r[9]), spent: r[10] as readonly string[], gapAt: Number(r[11]), gapMs: Number(r[12]) };
        default:
          throw unknownReply(r);
      }
    },
  },
  /** Counts what a timed set holds, its leases a page at a time. */
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
  /** Reads what was discarded of a timed set, the oldest first, no more than about a megabyte of it, but at least one. */
  'timed-failures': {
    keys: (k: {
      /** what was discarded */ readonly failures: string;
    }): string[] => [k.failures],
    args: (a: {
      /** where to begin, as XRANGE has it */ readonly from: string;
      /** how many at most */ readonly count: number;
    }): Argument[] => [a.from, a.count],
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
  /** Puts keys into a timed set, or moves those that are there. One that somebody else has taken stays taken: it comes at its new time when that lease is settled or over, and not before it is over. `number` counts the puts of one caller upwards, one at a time, so that one that arrives twice or late does nothing. */
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
      /** for each key: key, token of the caller's own lease or '', time or '+ms', payload or '' */ readonly entries: readonly { readonly key: string; readonly token: string; readonly time: Argument; readonly payload: string }[];
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
  /** Settles what was taken of a timed set, each by the lease under which it was taken: whoever lost that to another changes nothing. A lease whose time is over stands until another takes the key. `number` counts the settles of one caller upwards, one at a time: one that arrives twice is answered the same, one that arrives late does nothing. */
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
      /** for each key: key, token, verb, value done: it is over, or comes at the time to which it was moved meanwhile · retry: it comes at value (a time, or '+ms') with one failure more, or as it was put meanwhile · back: it comes at its own time as if it had not been taken · discard: it goes to the failures, with value as its message · keep: the lease ends value ms from here · remove: it is over, whoever has it; with token '' */ readonly outcomes: readonly { readonly key: string; readonly token: string; readonly verb: string; readonly value: Argument }[];
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
  /** Takes what is due in a timed set, at most `count`, in due order, under a lease that ends by itself; no more than about a mebibyte, in which a key counts three times and 2,500 more, but one in any case. `number` counts the takes of one taker upwards, one at a time: one that arrives twice is answered the same keys, one that arrives late takes nothing. A condition, if the queue has one, is a function whose text stands in place of `granting`: it says how many may be taken now. */
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
  /** Unlinks what is kept of a request that keeps much when its retention is over, before it would expire: the server frees what is unlinked beside its work, and what expires in the midst of it. */
  'unlink-spent': {
    keys: (k: {
      /** state of the request */ readonly request: string;
      /** index -> error; 'index:payload' -> payload */ readonly failed: string;
      /** outcomes in the order of settling */ readonly results: string;
    }): string[] => [k.request, k.failed, k.results],
    args: (a: {
      /** of the life that is over */ readonly generation: number;
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
  /** Changes a request that goes on. A raised limit mints; a lowered one grants nothing until so many have ended that running work is below it, and every settle says how many permits are left. A changed priority leaves the tokens in the old list to themselves. The epoch makes a step of two, so that they are of neither of the two epochs that count: they die at `enter`, and whatever the queue side has marked of them means nothing here. What is missing is minted into the new list. */
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
    }): Argument[] => [a.generation, a.limit ?? '', a.priority ?? '', a.toleratedFailures],
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
  /** Ends a tend on the queue side: pushes what it minted, in any case and first, then, if the claim still stands, puts the request to sleep until its tokens are popped or until its next time. */
  'write-back': {
    keys: (k: {
      /** id -> generation */ readonly open: string;
      /** id -> time of its next attention */ readonly agenda: string;
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
      /** time of the next look, or 0 */ readonly next: number;
      /** '+' and the task when the request is parked, or '' */ readonly parkedTask: string;
      /** from a token's pop to its enter at the latest */ readonly graceMs: number;
      /** until it is looked at in any case */ readonly slowMs: number;
      /** when it was due, of one that is expedited; left out: it is not */ readonly due?: number | undefined;
      /** shard channel of the queue's workers, with due */ readonly channel?: string | undefined;
    }): Argument[] => [a.id, a.generation, a.claim, a.mint, a.epoch, a.priority, a.before, a.next, a.parkedTask, a.graceMs, a.slowMs, ...(a.due === undefined ? [] : [a.due]), ...(a.channel === undefined ? [] : [a.channel])],
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
