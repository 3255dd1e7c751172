export const RUN_LABEL: string;
export function whyNoEngine(): string | undefined;
export function whyNoImage(image: string, limits: { pullMs: number }): string | undefined;
export function sweepContainers(run: string): void;
