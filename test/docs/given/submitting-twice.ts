export const date = '2026-11-22';
