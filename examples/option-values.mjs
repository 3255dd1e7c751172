// What the command lines of the samples accept as values. Everything is checked before anything is
// started or written.
import { InvalidArgumentError } from 'commander';

export const integer = (min, max) => (text) => {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new InvalidArgumentError(`A whole number from ${min} to ${max} is needed.`);
};

/** An id, or the name of a queue. */
export function name(text) {
  if (/^[A-Za-z0-9_.:-]{1,128}$/.test(text)) return text;
  throw new InvalidArgumentError('1 to 128 of A-Z a-z 0-9 _ . : - are needed.');
}

export function redis(text) {
  if (/^((redis|valkey)s?(-sentinel)?:\/\/|unix:\/\/|\/)./.test(text)) return text;
  throw new InvalidArgumentError('A redis:// URL is needed.');
}
