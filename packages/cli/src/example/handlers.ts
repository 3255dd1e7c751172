import { setTimeout as sleep } from 'node:timers/promises';
import type { Handler } from '@piecework/worker';
import type { Letter, Report } from './kinds.js';

/*
 * The handlers of the example of `piecework dev --dashboard`, as a module of `piecework worker`. They wait where real
 * handlers would work, and some of them fail.
 */

class UnsupportedFormatError extends Error {
  override readonly name = 'UnsupportedFormatError';
}

class MailServerError extends Error {
  override readonly name = 'MailServerError';
}

/** Waits for a time between both bounds, in ms; rejects when the outcome is not wanted any more. */
const work = (from: number, to: number, signal: AbortSignal) =>
  sleep(from + Math.random() * (to - from), undefined, { signal });

const thumbnail: Handler<string> = async (photo, { signal }) => {
  await work(80, 400, signal);
  if (photo.endsWith('.tiff'))
    throw new UnsupportedFormatError(`${photo}: TIFF images have no decoder here`);
  return { file: photo.replace('.jpg', '.thumb.jpg'), width: 240 };
};

const mail: Handler<Letter> = async ({ to, number }, { attempt, signal }) => {
  await work(150, 300, signal);
  if (number % 90 === 89) throw new MailServerError(`550 ${to}: no such mailbox`);
  if (number % 40 === 39 && attempt === 1)
    throw new MailServerError('421 too many letters at once, try again later');
  return { accepted: to };
};

const report: Handler<Report> = async ({ month }, { progress, signal }) => {
  const pages = 20;
  for (let page = 1; page <= pages; page++) {
    await work(300, 700, signal);
    progress(page);
  }
  return { month, pages };
};

const backup: Handler<string> = async (folder, { signal }) => {
  await work(300, 800, signal);
  return { folder, files: 40 + (folder.length % 7) };
};

export default { thumbnail, mail, report, backup };
