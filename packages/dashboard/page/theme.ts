import { signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';
const KEPT = 'piecework-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

const chosen = signal<Theme>(read());
/** What is shown: 'light' or 'dark'. */
export const theme = signal<'light' | 'dark'>('light');

function read(): Theme {
  try {
    const kept = localStorage.getItem(KEPT);
    return kept === 'light' || kept === 'dark' ? kept : 'auto';
  } catch {
    return 'auto';
  }
}

function apply(): void {
  const shown = chosen.value === 'auto' ? (dark.matches ? 'dark' : 'light') : chosen.value;
  document.documentElement.dataset['theme'] = shown;
  theme.value = shown;
}
dark.addEventListener('change', apply);
apply();

export function switchTheme(): void {
  chosen.value = theme.value === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem(KEPT, chosen.value);
  } catch {
    // Kept for this page only.
  }
  apply();
}
