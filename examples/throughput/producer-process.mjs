// One producer process: submits its share of the requests, one after the other.
import { Piecework } from 'piecework';
import { runChild } from './counted-child.mjs';

let current;
let before = 0;

async function produce({ redis, queue, ids, subRequests, payloadBytes, limit, priority }, signal) {
  const pw = new Piecework({ redis, queue });
  const payload = 'x'.repeat(payloadBytes);
  try {
    for (const id of ids) {
      // Nobody reads the results here; what is left of a request goes after a minute.
      const options = { id, limit, priority, results: 'discard', retentionMs: 60_000 };
      current = await pw.open(options);
      for (let i = 0; i < subRequests; i += 1) {
        if (signal.aborted) return await current.cancel();
        await current.append(payload);
      }
      await current.seal();
      before += current.appended;
      current = undefined;
    }
  } finally {
    await pw.close();
  }
}

await runChild(produce, () => before + (current?.appended ?? 0));
