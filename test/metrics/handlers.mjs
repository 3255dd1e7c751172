// The handlers of the fleets under test. A payload says what is to happen.
import { setTimeout as sleep } from 'node:timers/promises';

export default {
  async known({ ms = 0, fail, block, ignore } = {}, { signal }) {
    if (block) {
      const end = performance.now() + block;
      while (performance.now() < end);
    }
    if (ms > 0) await sleep(ms, undefined, ignore ? {} : { signal });
    if (fail) throw new RangeError('as asked');
    return ms;
  },
};
