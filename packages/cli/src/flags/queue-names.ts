import { custom, type Flag, flag, isText } from './flag.js';

const QUEUE = /^[A-Za-z0-9_.:-]{1,128}?(?:\*([1-9]|[1-5]\d|6[0-4]))?$/;

/** Checks each of several texts with commas between them. */
export const each = (pattern: RegExp) => (value: unknown) =>
  isText(value) &&
  String(value)
    .split(',')
    .every((one) => pattern.test(one));

/** `--queues`: several instead of one. @param verb what the command does with them */
export const queuesFlag = (verb: string): Flag =>
  flag(
    '--queues <list>',
    `${verb} these queues instead of --queue: names with commas between them; NAME*4 has four shards`,
    custom(
      each(QUEUE),
      'names of queues with commas between them, each perhaps with its number of shards, as in req,mail*4',
    ),
  );

/** The queues that `--queues` names, or the one of `--queue`. */
export function queuesOf({
  queue,
  shards,
  queues,
}: {
  readonly queue: string;
  readonly shards: number;
  readonly queues?: string;
}): { readonly name: string; readonly shards: number }[] {
  if (queues === undefined) return [{ name: queue, shards }];
  return queues.split(',').map((one) => {
    const [name = '', n] = one.split('*');
    return { name, shards: n === undefined ? 1 : Number(n) };
  });
}
