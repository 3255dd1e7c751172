/** Calls a listener of the user. What goes wrong in it, now or later, goes to `onFault`, or to nobody. */
export function telling<What>(
  listener: ((what: What) => unknown) | undefined,
  onFault: (error: unknown) => void = () => {},
): (what: What) => void {
  return (what) => {
    try {
      Promise.resolve(listener?.(what)).catch(onFault);
    } catch (error) {
      onFault(error);
    }
  };
}
