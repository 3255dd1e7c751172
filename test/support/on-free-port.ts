import { freePort } from '../../packages/embedded/dist/free-port.js';

const TRIES = 10;

/** Starts something at a port that is free; at another one when somebody was faster. */
export async function onFreePort<Started>(
  start: (port: number) => Promise<Started>,
): Promise<Started> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (tries === TRIES || !/address already in use/i.test(String(error))) throw error;
    }
  }
}
