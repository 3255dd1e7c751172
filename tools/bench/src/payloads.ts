export interface Payload {
  readonly n: number;
  readonly pad: string;
}

/** Payloads numbered from 0, each of exactly `bytes` bytes of JSON. */
export function makePayloads(count: number, bytes: number): Payload[] {
  return Array.from({ length: count }, (_, n) => {
    const bare = JSON.stringify({ n, pad: '' }).length;
    return { n, pad: 'x'.repeat(Math.max(0, bytes - bare)) };
  });
}
