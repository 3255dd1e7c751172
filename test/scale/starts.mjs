// Reads the journals of whole-life-worker.mjs and says of every start of a handler how many ran then,
// and how many may have.
//
// Which limit holds for a start. A change of it (a pause is a change to 0) is asked for at `askedNs`
// and acknowledged at `doneNs`; from its next settle on, a worker starts nothing above it. A settle
// came after the change for certain if it reported a run that ended after `doneNs`. Until then any
// limit that was asked for and is not over for this worker may be in force; the greatest counts. A
// worker that was born after a change knows it from the begin.
//
// What a reply starts is written right before the outcomes that it took. A start right behind the end
// of a handler is of what was read ahead: the reply, in the same turn, may have come after it.
//
// What runs at an instant is between its begin and its end, both written by its handler. What was
// killed ran until its process was gone. A run whose signal aborted is a zombie from then on: it does
// not count against the limit.

/**
 * @param journals of each worker: its text, and when it was gone (`endNs`)
 * @param limits changes of the limit in their order, the first one from the begin:
 *   { limit, askedNs, doneNs }
 */
export function judgeStarts(journals, limits) {
  const runs = [];
  const workers = journals.map((journal) => readJournal(journal, limits, runs));
  const steps = runs.flatMap((run) => [
    { ns: run.fromNs, by: 1, run },
    { ns: run.toNs, by: -1, run },
  ]);
  // At the same instant what ends comes first, but nothing ends before it began.
  steps.sort((a, b) => (a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : a.by - b.by));
  const figures = limits.map(({ limit }) => ({ limit, starts: 0, most: 0, above: 0 }));
  const violations = [];
  let running = 0;
  for (const { ns, by, run } of steps) {
    running += by;
    if (by < 0) continue;
    const lawful = inForce(ns, limits, workers[run.worker]);
    const allowed = Math.max(...lawful.map((each) => limits[each].limit));
    // Those under one limit for certain are what its row is about.
    if (lawful.length === 1) {
      const row = figures[lawful[0]];
      row.starts += 1;
      row.most = Math.max(row.most, running);
    }
    if (running <= allowed) continue;
    if (lawful.length === 1) figures[lawful[0]].above += 1;
    violations.push(`${run.index} began as number ${running} of ${allowed}`);
  }
  const zombies = runs.filter(({ zombie }) => zombie).length;
  const killed = runs.filter(({ cutOff }) => cutOff).length;
  return { runs: runs.length, zombies, killed, figures, violations };
}

/** Adds its runs; returns from when on it keeps to each of the changes. */
function readJournal({ text, endNs }, limits, runs) {
  const worker = { number: runs.workers ?? 0, knows: limits.map(() => undefined) };
  runs.workers = worker.number + 1;
  const open = new Map();
  const lastEnd = new Map();
  let turnBefore;
  let isBehindEnd = false;
  /** When a reply may have come, in this turn: behind all that handlers which ended have started. */
  let repliedNs;
  // The last line of one that was killed may be cut off.
  const lines = text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter(Boolean);
  for (const line of lines) {
    const [kind, turn, at, ...what] = line.split(' ');
    const ns = BigInt(at);
    if (turn !== turnBefore) isBehindEnd = false;
    if (turn !== turnBefore || kind === 'e') repliedNs = undefined;
    if (kind !== 'e' && !(kind === 'b' && isBehindEnd)) repliedNs ??= ns;
    turnBefore = turn;
    isBehindEnd = kind === 'e';
    if (kind === 'l') know(worker, limits, ns, ns);
    else if (kind === 's') know(worker, limits, lastEnd.get(what[0]), repliedNs);
    else if (kind === 'b') {
      const run = { worker: worker.number, index: what[1], fromNs: ns, toNs: endNs, cutOff: true };
      open.set(what[0], run);
      runs.push(run);
    } else if (kind === 'a' && open.has(what[0])) {
      Object.assign(open.get(what[0]), { toNs: ns, zombie: true });
    } else if (kind === 'e') {
      const run = open.get(what[0]);
      if (!run.zombie) run.toNs = ns;
      run.cutOff = false;
      lastEnd.set(what[1], ns);
      open.delete(what[0]);
    }
  }
  return worker;
}

/** It was told something by the server in a call that was sent after `sentNs`; it heard it at `ns`. */
function know({ knows }, limits, sentNs, ns) {
  for (const [i, { doneNs }] of limits.entries()) {
    if (sentNs > doneNs) knows[i] ??= ns;
  }
}

/** The changes that may be the last one that this worker was told of. */
function inForce(ns, limits, { knows }) {
  const isOver = (i) => limits.slice(i + 1).some((_, k) => knows[i + 1 + k] <= ns);
  return limits.flatMap(({ askedNs }, i) => (askedNs <= ns && !isOver(i) ? [i] : []));
}
