import { nanoid } from 'nanoid';

/** A random id: 21 of A-Z a-z 0-9 _ -, and no `-` first, or a command line would take it for an option. */
export function newId(): string {
  for (;;) {
    const id = nanoid();
    if (!id.startsWith('-')) return id;
  }
}
