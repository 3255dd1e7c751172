// What a worker does with one part: it prints the object that it was given.
import { setTimeout as sleep } from 'node:timers/promises';

const workMs = Number(process.env.WORK_MS ?? 0);

/** A clock that all processes of this machine share. */
const nowMs = () => Number(process.hrtime.bigint()) / 1e6;

/** @param {{ request: number, part: string, index: number }} object */
export default async function print(object, { signal }) {
  const startMs = nowMs();
  console.log(JSON.stringify({ pid: process.pid, object }));
  if (workMs > 0) await sleep(workMs, undefined, { signal });
  return { startMs, endMs: nowMs() };
}
