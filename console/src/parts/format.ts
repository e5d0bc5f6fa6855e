/** Times and numbers as they are read. Pure. */
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

/** How long ago, in the words of a language. */
export function ago(time: string, now: number, language: string): string {
  const seconds = (Date.parse(time) - now) / 1000;
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });
  for (const [unit, length] of UNITS)
    if (Math.abs(seconds) >= length) return format.format(Math.round(seconds / length), unit);
  return format.format(Math.round(seconds), 'second');
}

/** A day, and a moment, as the reader's clock has them. */
export function day(time: string | null | undefined): string {
  return time ? local(time).slice(0, 10) : '…';
}

export function moment(time: string | null | undefined): string {
  return time ? local(time).slice(0, 16).replace('T', ' ') : '…';
}

function local(time: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return time;
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString();
}

/** What an input of a moment holds, as the API takes it; undefined if it is empty. */
export function toInstant(input: string | null): string | undefined {
  if (!input) return undefined;
  const time = new Date(input);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

export function count(value: number, language: string): string {
  return new Intl.NumberFormat(language).format(value);
}

/** Large numbers, shortened: 41k. */
export function short(value: number, language: string): string {
  return new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 }).format(value);
}

export const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;

/** An instant as an input of the reader's clock holds it, to the minute or to the second. */
export const toInput = (instant: string | null, exact = false): string =>
  instant ? local(instant).slice(0, exact ? 19 : 16) : '';
