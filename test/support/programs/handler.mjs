// A handler for tests of the command line: doubles numbers, fails on "bad", waits on "wait:ms".
import { setTimeout as sleep } from 'node:timers/promises';

export default async (payload, { signal }) => {
  if (payload === 'bad') throw new TypeError('this one is bad');
  const wait = /^wait:(\d+)$/.exec(payload);
  if (wait) await sleep(Number(wait[1]), undefined, { signal });
  return typeof payload === 'number' ? payload * 2 : payload;
};
