import type { installTestClock } from '@piecework/protocol/testing';

export interface HeaderRow {
  readonly name: string;
  readonly rest: boolean;
  /** As the header has it; 'group': several of `each`. */
  readonly type: string;
  readonly each?: readonly { readonly name: string; readonly type: string }[];
  readonly about?: string;
}

export interface HeaderReply {
  readonly word: string;
  readonly fields: readonly HeaderRow[];
}

export interface Header {
  readonly purpose: string;
  readonly keys: readonly HeaderRow[];
  readonly args: readonly HeaderRow[];
  readonly replies: readonly HeaderReply[];
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
export const libraryNames: readonly string[];
export function checkLibrary(name: string, source?: string): void;
export function readLibrary(name: string): string;
export function buildScripts(options?: { clock?: 'server' | 'test' }): BuiltScripts;
