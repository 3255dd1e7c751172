export function scripts(): string[];
export function actions(): { script: string; calls: number }[];
