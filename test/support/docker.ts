import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeEach } from 'vitest';
import { whyNoEngine, whyNoImage } from '../../scripts/docker-engine.mjs';
import { testImage } from './mode.js';

/*
 * Tests that use a container whatever the mode, where a Docker engine answers. Without one, or
 * without the image, they are skipped and say why.
 */

/** Skips all tests of this file, aloud, when there is no container to be had. */
export function needsDocker(): void {
  // A short time: who wants to wait for a download pulls the image before.
  const noImage = () => {
    const why = whyNoImage(testImage, { pullMs: 20_000 });
    return why && `${testImage}: ${why}`;
  };
  const reason = whyNoEngine() ?? noImage();
  beforeEach((context) => {
    if (reason === undefined) return;
    context.task.meta.skipped = reason;
    context.skip(reason);
  });
}

/** Runs `docker …` and answers what it says, trimmed. */
export async function askDocker(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('docker', args);
  return stdout.trim();
}
