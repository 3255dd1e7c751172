/** Calls a listener of the user. An error or a rejection of it goes to `onFault`; without that it is ignored. */
export function safely<What>(
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
