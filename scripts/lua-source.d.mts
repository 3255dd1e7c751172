import type { installTestClock } from '@piecework/protocol/testing';

export interface HeaderRow {
  readonly name: string;
  readonly rest: boolean;
  readonly type: string;
}

export interface Header {
  readonly purpose: string;
  readonly keys: readonly HeaderRow[];
  readonly args: readonly HeaderRow[];
  readonly replies: readonly string[];
  readonly repeat: string;
  readonly flags: string;
}

export type BuiltScripts = {
  -readonly [Name in keyof Parameters<typeof installTestClock>[0]]: Parameters<
    typeof installTestClock
  >[0][Name];
};
export type ScriptName = keyof BuiltScripts;

export const scriptNames: readonly ScriptName[];
export function readSource(name: string): string;
export function shaOf(lua: string): string;
export function parseHeader(name: string, source: string): Header;
export function checkHeader(name: string, source: string): Header;
export function buildScripts(options?: { clock?: 'server' | 'test' }): BuiltScripts;
