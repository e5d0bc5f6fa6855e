/** Light, dark, or as the system has it. */
export type Theme = 'system' | 'light' | 'dark';
const KEPT = 'recollect.theme';

export function preferredTheme(): Theme {
  const kept = localStorage.getItem(KEPT);
  return kept === 'light' || kept === 'dark' ? kept : 'system';
}

/** The other one of what is seen now. */
export function nextTheme(theme: Theme): Theme {
  const dark = theme === 'dark' || (theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  return dark ? 'light' : 'dark';
}

export function keepTheme(theme: Theme): void {
  if (theme === 'system') return;
  localStorage.setItem(KEPT, theme);
  document.documentElement.dataset.theme = theme;
}
