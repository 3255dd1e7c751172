// A process that takes what is due, or, as control, only sets a timer for each time. For scheduler.mjs.
//
//   node test/scale/scheduler-taker.mjs '{"redis": …, "name": …, "lockMs": …, "log": …}'
//   node test/scale/scheduler-taker.mjs '{"times": [start, step, n], "log": …}'
//
// The log, written before anything else is done: 'taken <object> <at> <server time> <own time>' and
// 'removed <object> <true|false> <own time>'; of the control 'timer <i> <at> <own time>'. Told 'hold' it removes nothing
// more and says { holding } when it has taken some.
import { openSync, writeSync } from 'node:fs';
import { Scheduler } from '@piecework/queues';

const { redis, name, lockMs, log, times } = JSON.parse(process.argv[2]);
const file = openSync(log, 'a');
const note = (...words) => writeSync(file, `${words.join(' ')}\n`);
const HELD = 3;

function control([start, step, n]) {
  for (let i = 0; i < n; i += 1) {
    const at = start + i * step;
    setTimeout(() => note('timer', i, at, Date.now()), at - Date.now());
  }
  setTimeout(() => process.send({ over: true }), start + n * step + 1_000 - Date.now());
}

async function take() {
  const scheduler = new Scheduler({ redis, name });
  let holds = false;
  let held = 0;
  process.on('message', () => {
    holds = true;
  });
  for await (const { object, at, lockedUntil } of scheduler.due({ lockMs, demand: 20 })) {
    note('taken', object, at, lockedUntil - lockMs, Date.now());
    if (holds) {
      held += 1;
      if (held === HELD) process.send({ holding: held });
      continue;
    }
    void scheduler.remove(object).then((counted) => note('removed', object, counted, Date.now()));
  }
}

process.send({ ready: true });
process.on('disconnect', () => process.exit());
if (times) control(times);
else await take();
