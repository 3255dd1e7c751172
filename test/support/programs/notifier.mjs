// Awaits one completion, as a process of its own. Says 'awaiting', then the outcome or the error.
import { Notifier } from '@piecework/notifier';

const { redis, queue, id } = JSON.parse(process.argv[2]);
const notifier = new Notifier({ redis, queue });
const completion = notifier.completion(id, { timeoutMs: 30_000 });
console.log(JSON.stringify('awaiting'));
try {
  const { status, counts, generation } = await completion;
  console.log(JSON.stringify({ status, counts, generation }));
} catch ({ name, code }) {
  console.log(JSON.stringify({ name, code }));
}
await notifier.close();
