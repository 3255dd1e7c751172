export const metrics = { count: (_status: string): void => {} };
export const report = (_error: unknown, _requestId: string | undefined): void => {};
