export const unmodelled: readonly { readonly cure: string; readonly why: string }[];
export const notSteps: readonly { readonly script: string; readonly why: string }[];
export const readOnly: readonly { readonly script: string; readonly why: string }[];
export const leftOut: readonly { readonly script: string; readonly why: string }[];
