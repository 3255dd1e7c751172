/**
 * V8 keeps a text of more than 131,000 bytes apart from the others, and to make and write one takes three times the CPU
 * time for each byte (docs/decisions/0051-bytes-of-payloads.md). One character beyond Latin-1 gives all characters of a
 * text two bytes. In characters.
 */
export const LONG_TEXT = 60_000;
