import { useState } from 'preact/hooks';
import { ask } from '../live.js';
import { route } from '../route.js';

/**
 * A change: what the server calls it, its body, and what to say when it is done; it says so where nothing had to be
 * changed. @returns whether it was done
 */
export type Act = (action: string, body: object, done: string) => Promise<boolean>;

interface Done {
  readonly done: { readonly changed?: boolean };
}

/** Calls the server, and keeps what it said. */
export function useAct() {
  const [said, setSaid] = useState<{ readonly text: string; readonly isBad: boolean }>({
    text: '',
    isBad: false,
  });
  const [isBusy, setBusy] = useState(false);
  const act = async (action: string, body: object, done: string): Promise<boolean> => {
    setBusy(true);
    try {
      const answer = await ask<Done>(`api/control/${action}`, {
        queue: route.value.queue,
        ...body,
      });
      const text = answer.done.changed === false ? 'It was so already: nothing changed.' : done;
      setSaid({ text, isBad: false });
      return true;
    } catch (error) {
      setSaid({ text: (error as Error).message, isBad: true });
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { act, said, isBusy };
}

export function Said({ text, isBad }: { readonly text: string; readonly isBad: boolean }) {
  return (
    <p class={isBad ? 'said bad' : 'said'} role={isBad ? 'alert' : 'status'}>
      {text}
    </p>
  );
}
