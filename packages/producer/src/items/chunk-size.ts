/** The most items of one chunk: what one call of `append` carries. */
export const CHUNK_ITEMS = 500;
/** About the most bytes of one chunk. */
export const CHUNK_BYTES = 1_000_000;
