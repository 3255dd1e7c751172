import { defineTask, Piecework, type RequestHandle, type ResultsOptions } from 'piecework';

const resize = defineTask<{ path: string }, { bytes: number }>('resize');
const pw = new Piecework({ redis: 'redis://localhost' });
const request = await pw.submit([{ path: 'a' }], { task: resize });
const created: boolean = request.created;
const handle: RequestHandle<{ bytes: number }> = request;

/* A result is there, unless failures are asked for. */
for await (const { index, value, cursor } of request.results())
  console.log(index, value.bytes, cursor, created);
for await (const item of handle.results({ order: 'index', failed: false })) {
  console.log(item.value.bytes, item.status);
  // @ts-expect-error results are what the task gives
  console.log(item.value.path);
}
for await (const item of request.results({ failed: true, order: 'index' })) {
  // @ts-expect-error it may be a failure
  console.log(item.value);
  if (item.status === 'succeeded') console.log(item.value.bytes);
  else console.log(item.error.message);
}
declare const asked: ResultsOptions;
for await (const item of request.results(asked)) {
  // @ts-expect-error so it may be when options say it
  console.log(item.value);
}
for await (const item of request.results({ failed: Math.random() > 0.5 })) {
  // @ts-expect-error or may say it
  console.log(item.value);
}

/* A handle of another process has the type that it is given. */
for await (const { value } of pw.request<number>('id').results()) console.log(value.toFixed());
for await (const { value } of pw.request('id', { task: resize }).results()) {
  console.log(value.bytes);
  // @ts-expect-error the type is that of its task
  console.log(value.path);
}
for await (const { value } of pw.request('id').results()) {
  // @ts-expect-error nothing is known of it
  console.log(value.bytes);
}

/* The limit of a status may be given back. */
const { limit } = await request.status();
await request.update({ limit });
await request.update({ limit: null });
// @ts-expect-error there may be none
console.log(limit.toFixed());

/* How the request ended is known behind the results; also that of one that nobody finished. */
const results = pw.request('any', { task: resize }).results();
for await (const { value } of results) console.log(value.bytes);
const why: 'deadline' | 'failures' | 'cancel' | 'producer-lost' | undefined =
  results.outcome?.endReason;
console.log(why, results.outcome?.throwIfFailed().counts.cancelled);
