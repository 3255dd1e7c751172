import { type OptionSpec, option } from '@piecework/protocol/contract';

/**
 * A flag of the command line. Most set the option of the same name: the range and the default of the flag come from the
 * table of that option, so that the two cannot disagree.
 */
export interface Flag {
  readonly name: string;
  /** In the syntax of commander: '--limit <n>'. */
  readonly usage: string;
  readonly about: string;
  readonly spec: OptionSpec;
  readonly kind: 'number' | 'number or none' | 'text' | 'texts' | 'switch' | 'json' | 'time';
  /** The default in words, for one that depends on something. */
  readonly otherwise?: string;
}

export const isText = (value: unknown) => typeof value === 'string' && value.length > 0;

export function flag(
  usage: string,
  about: string,
  spec: OptionSpec | undefined,
  kind: Flag['kind'] = 'text',
  otherwise?: string,
): Flag {
  const dashed = /--([a-z-]+)/.exec(usage)?.[1] ?? '';
  const name = dashed.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  if (!spec) throw new Error(`no option table contains ${name}`);
  return { name, usage, about, spec, kind, ...(otherwise === undefined ? {} : { otherwise }) };
}

export const custom = (check: (value: unknown) => boolean, allowed: string, byDefault?: unknown) =>
  option.custom(check, allowed, byDefault);

/** `none` on the command line is null in the option. */
export const orNone = (spec: OptionSpec | undefined): OptionSpec | undefined =>
  spec && { ...spec, allowed: spec.allowed.replace('null', 'none') };
