/** The words of the screens, in two languages. A word that is missing in one does not compile. */
import { createContext, useContext } from 'react';
import { en, type Words } from './en';
import { zh } from './zh';

export type { Words };
export type Language = 'en' | 'zh';
export const WORDS: Record<Language, Words> = { en, zh };
export const LanguageContext = createContext<Language>('en');
export const useLanguage = (): Language => useContext(LanguageContext);
export const useWords = (): Words => WORDS[useLanguage()];

const KEPT = 'recollect.language';

export function preferredLanguage(): Language {
  const kept = localStorage.getItem(KEPT);
  if (kept === 'en' || kept === 'zh') return kept;
  return navigator.language.startsWith('zh') ? 'zh' : 'en';
}

export const keepLanguage = (language: Language): void => localStorage.setItem(KEPT, language);
