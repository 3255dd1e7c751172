/** The most items of one chunk: what one call of `append` carries. */
export const CHUNK_ITEMS = 500;
/**
 * About the most bytes of one chunk. Up to four are on their way. Node takes three times as long for each byte of a
 * longer call (docs/decisions/0051-bytes-of-payloads.md), and what came first can be run sooner.
 */
export const CHUNK_BYTES = 100_000;
/** The most bytes of a submission that is sent whole in one call. */
export const WHOLE_BYTES = 1_000_000;
