import type { installTestClock } from '@piecework/protocol/testing';
import type { Change } from './anchors.mjs';

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
  /** Whether it answers a list: one reply for each of several requests. */
  readonly each: boolean;
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

/** A cure that is switched off in a script, or its flags. */
export type ScriptMutation =
  | { readonly script: ScriptName; readonly cure: string; readonly change?: Change }
  | { readonly script: ScriptName; readonly flags: false };

export interface BuildOptions {
  readonly clock?: 'server' | 'test';
  readonly mutations?: readonly ScriptMutation[];
}

export function buildScripts(options?: BuildOptions): BuiltScripts;
export function buildScript(
  name: ScriptName,
  clock: 'server' | 'test',
  mutations?: readonly ScriptMutation[],
): { readonly sha: string; readonly lua: string };
export function sourceWithIncludes(
  name: ScriptName,
  clock?: 'server' | 'test',
): { readonly included: readonly string[]; readonly text: string };
