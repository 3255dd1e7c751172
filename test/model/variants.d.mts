export interface Configuration {
  readonly name: string;
  readonly faults: string;
  readonly flags: readonly string[];
  readonly size: 'small' | 'medium' | 'full';
}
export interface Variant {
  readonly cure: string;
  readonly flag: string;
  readonly configuration: string;
}
export const configurations: readonly Configuration[];
export const variants: readonly Variant[];
