export interface Tools {
  readonly spin: string;
  readonly cc: string;
}
export interface Checked {
  readonly states: number;
  readonly transitions: number;
  readonly depth: number;
  readonly memoryMb: number;
  readonly seconds: number;
  readonly errors: number;
  readonly whole: boolean;
  readonly violated: string;
  readonly trail: boolean;
}
export function findTools(): Promise<Tools | string>;
export function check(
  tools: Tools,
  flags: readonly string[],
  options?: { variant?: boolean; large?: boolean; signal?: AbortSignal },
): Promise<Checked>;
