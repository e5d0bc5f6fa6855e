/** Spans of time on a line; an open end runs to the edge. Pure. */
export type Span = { from: string | null; to: string | null };
export type Extent = readonly [number, number];
const DAY = 86_400_000;

/** From the earliest to the latest moment that is named, now among them, with a little room. */
export function extent(spans: Span[], now: number): Extent {
  const known = spans.flatMap((span) => [span.from, span.to]).flatMap((time) => (time ? [Date.parse(time)] : []));
  const low = Math.min(...known, now);
  const high = Math.max(...known, now);
  const room = (high - low) * 0.04 || DAY;
  return [low - room, high + room];
}

/** Where a moment lies, in per cent of the line. */
export const placeMoment = (time: number, [low, high]: Extent): number => ((time - low) / (high - low)) * 100;

/** Where a span lies, in per cent; a moment stays visible. */
export function placeSpan(span: Span, line: Extent): { x: number; width: number } {
  const x = span.from === null ? 0 : clamp(placeMoment(Date.parse(span.from), line));
  const end = span.to === null ? 100 : clamp(placeMoment(Date.parse(span.to), line));
  return { x: Math.min(x, 99.4), width: Math.max(0.6, end - x) };
}

const clamp = (value: number): number => Math.min(100, Math.max(0, value));

/** Round moments to write below a line: years, months or days, at most `most` of them. */
export function ticks([low, high]: Extent, most = 8): { time: number; label: string }[] {
  const years = new Date(high).getUTCFullYear() - new Date(low).getUTCFullYear();
  const months = (high - low) / DAY / 30;
  if (years >= 2) return steps(low, high, 12 * Math.max(1, Math.ceil(years / most)), 4);
  if (months >= 2) return steps(low, high, Math.max(1, Math.ceil(months / most)), 7);
  return days(low, high, most);
}

function steps(low: number, high: number, months: number, letters: number): { time: number; label: string }[] {
  const first = new Date(low);
  const found = [];
  const start = letters === 4 ? 0 : first.getUTCMonth();
  for (let month = start; found.length < 40; month += months) {
    const time = Date.UTC(first.getUTCFullYear(), month, 1);
    if (time > high) break;
    if (time >= low) found.push({ time, label: new Date(time).toISOString().slice(0, letters) });
  }
  return found;
}

function days(low: number, high: number, most: number): { time: number; label: string }[] {
  const step = Math.max(1, Math.ceil((high - low) / DAY / most)) * DAY;
  const found = [];
  for (let time = Math.ceil(low / DAY) * DAY; time <= high; time += step)
    found.push({ time, label: new Date(time).toISOString().slice(5, 10) });
  return found;
}
