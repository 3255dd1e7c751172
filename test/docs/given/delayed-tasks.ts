export const send = async (
  _whom: unknown,
  _what: unknown,
  _signal: AbortSignal,
): Promise<void> => {};
export const ring = async (_where: unknown): Promise<void> => {};
