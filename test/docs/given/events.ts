export const metrics = { count: (_status: string): void => {} };
export const report = (_error: unknown, _requestId: string | undefined): void => {};
export const save = async (_index: number, _value: unknown, _cursor: string): Promise<void> => {};
export const warn = (_text: string): void => {};
export const show = (_counts: unknown, _etaMs: number | null): void => {};
export const notify = async (_requestId: string, _outcome: string): Promise<void> => {};
export const gauge = (_open: number): void => {};
