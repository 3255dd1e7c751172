/**
 * Bytes that are not UTF-8 are `{"$binary":"<base64>"}` in payloads and results: JSON cannot contain them, and decoded
 * as text they would be other bytes.
 */
export interface Binary {
  readonly $binary: string;
}

export const binaryOf = (bytes: Buffer): Binary => ({ $binary: bytes.toString('base64') });

/** The bytes of such a value; undefined for any other value. */
export function bytesOf(value: unknown): Buffer | undefined {
  if (typeof value !== 'object' || value === null || !('$binary' in value)) return undefined;
  const { $binary } = value;
  if (typeof $binary !== 'string' || Object.keys(value).length !== 1) return undefined;
  const bytes = Buffer.from($binary, 'base64');
  return bytes.toString('base64') === $binary ? bytes : undefined;
}
