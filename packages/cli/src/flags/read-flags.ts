import {
  checkOption,
  InvalidOptionError,
  type OptionTable,
  PieceworkError,
} from '@piecework/protocol/contract';
import { type Command, Option } from 'commander';
import { timeOf } from '../terminal/time-of.js';
import type { Flag } from './flag.js';

/**
 * The same flags with other defaults: by the name of a flag, its default, or words that say what happens without it.
 */
export function withDefaults(
  flags: readonly Flag[],
  defaults: Readonly<Record<string, { readonly value?: unknown; readonly otherwise?: string }>>,
): Flag[] {
  return flags.map((one) => {
    const { value, otherwise } = defaults[one.name] ?? {};
    if (!Object.hasOwn(defaults, one.name)) return one;
    const { otherwise: _, ...rest } = one;
    const spec = { ...one.spec, default: value };
    return { ...rest, spec, ...(otherwise === undefined ? {} : { otherwise }) };
  });
}

/** Adds flags to a command. `readFlags` checks their values. */
export function addFlags(command: Command, ...groups: readonly (readonly Flag[])[]): Command {
  for (const { usage, about, spec, otherwise, kind } of groups.flat()) {
    const byDefault = otherwise ?? (spec.default === false ? undefined : spec.default);
    const shown = byDefault === undefined ? '' : ` (default: ${byDefault})`;
    const added = new Option(usage, about + shown);
    // For the shell's completion. Commander's `choices` would check the value as well, with another message.
    if (spec.words) added.argChoices = [...spec.words];
    // Commander would take the last value, and say nothing.
    if (kind !== 'texts' && kind !== 'switch')
      added.argParser<string>((value, previous) => {
        if (previous === undefined) return value;
        const what = `${added.long} is given twice: give it one value`;
        throw new PieceworkError(what, { code: 'INVALID_OPTION' });
      });
    command.addOption(added);
  }
  return command;
}

function parse(value: unknown, kind: Flag['kind']): unknown {
  if (kind === 'switch' || typeof value !== 'string') return value;
  if (kind === 'number or none' && value === 'none') return null;
  if (kind === 'number' || kind === 'number or none')
    return value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : value;
  if (kind === 'json') {
    try {
      return JSON.parse(value);
    } catch {
      return undefined;
    }
  }
  return value;
}

/**
 * The checked values of a command's flags. A flag that was not given and has no default is left out.
 * @throws InvalidOptionError that names the flag
 */
export function readFlags<T>(
  given: Record<string, unknown>,
  ...groups: readonly (readonly Flag[])[]
): T {
  const values: Record<string, unknown> = {};
  for (const { name, usage, spec, kind } of groups.flat()) {
    const raw = given[name];
    if (raw === undefined) {
      if (spec.default !== undefined) values[name] = spec.default;
      continue;
    }
    const named = /--[a-z-]+/.exec(usage)?.[0] ?? usage;
    const value = kind === 'time' ? timeOf(String(raw)) : parse(raw, kind);
    if (kind === 'time' && typeof value === 'string')
      throw new InvalidOptionError(named, raw, value);
    if (value === undefined) throw new InvalidOptionError(named, raw, spec.allowed);
    for (const one of kind === 'texts' ? (value as string[]) : [value])
      checkOption(named, one, spec);
    values[name] = value;
  }
  return values as T;
}

/** The `values` that are options of `table`. */
export function optionsOf<T>(table: OptionTable, values: Record<string, unknown>): T {
  return Object.fromEntries(
    Object.entries(values).filter(([name]) => Object.hasOwn(table, name)),
  ) as T;
}
