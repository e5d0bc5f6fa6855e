/** What made a score: its parts, in one order for all bars. Pure. */
export type Family = 'meaning' | 'words' | 'who' | 'time' | 'form';
export type Part = { name: string; family: Family; share: number; score: number | null };
export type Scored = {
  channels: Record<string, { share: number; score: number }>;
  preferences?: Record<string, number>;
};
export type Segment = { part: Part; from: number; width: number; shade: number };

/** What a part goes by. A part that is not listed is drawn last, as form. */
const FAMILIES: Record<Family, readonly string[]> = {
  meaning: ['vector', 'session_meaning', 'topic', 'stream', 'evidence'],
  words: ['text', 'keyword', 'coverage', 'surroundings', 'session', 'session_best'],
  who: ['speaker', 'answer', 'graph', 'named'],
  time: ['date', 'near_date', 'tells_time', 'recent', 'latest', 'past', 'accessed'],
  form: ['importance', 'tells_number', 'question', 'assistant', 'wish', 'instruction', 'long', 'diversity'],
};
export const FAMILY_NAMES = Object.keys(FAMILIES) as Family[];
const ORDER = FAMILY_NAMES.flatMap((family) => FAMILIES[family]);

export const familyOf = (name: string): Family =>
  FAMILY_NAMES.find((family) => FAMILIES[family].includes(name)) ?? 'form';

const rankOf = (name: string): number => {
  const place = ORDER.indexOf(name);
  return place < 0 ? ORDER.length : place;
};

/** Names in the order in which bars are drawn: by family, and the same within a family each time. */
export const inOrder = (names: string[]): string[] =>
  [...names].sort((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : a > b ? 1 : 0));

/** The parts of a score that count, in the fixed order. */
export function parts(scored: Scored): Part[] {
  const preferences = scored.preferences ?? {};
  const names = [...new Set([...Object.keys(scored.channels), ...Object.keys(preferences)])];
  return inOrder(names)
    .map((name): Part => {
      const channel = scored.channels[name];
      const share = (channel?.share ?? 0) + (preferences[name] ?? 0);
      return { name, family: familyOf(name), share, score: channel?.score ?? null };
    })
    .filter((part) => part.share !== 0);
}

/** Lay the parts along an axis at 0: what speaks for it goes right, what speaks against it left. */
export function segments(all: Part[]): Segment[] {
  let right = 0;
  let left = 0;
  const seen = new Map<Family, number>();
  return all.map((part) => {
    const width = Math.abs(part.share);
    const shade = seen.get(part.family) ?? 0;
    seen.set(part.family, shade + 1);
    if (part.share > 0) {
      right += width;
      return { part, from: right - width, width, shade };
    }
    left += width;
    return { part, from: -left, width, shade };
  });
}

/** One scale for many bars. */
export function bounds(all: Scored[]): { low: number; high: number } {
  let low = 0;
  let high = 0.01;
  for (const scored of all) {
    const shares = parts(scored).map((part) => part.share);
    low = Math.min(low, sum(shares.filter((share) => share < 0)));
    high = Math.max(high, sum(shares.filter((share) => share > 0)));
  }
  return { low, high };
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
