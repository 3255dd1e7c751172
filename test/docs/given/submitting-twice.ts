export const digestOfTheFile = 'digest';
export const date = '2026-11-22';
export const lines = ['a', 'b'];
