/** The whole program of the renewal thread as one text, CommonJS. scripts/build-thread.mjs writes it into dist. */
export declare const RENEWAL_THREAD: string;
