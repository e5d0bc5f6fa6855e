/** How many memories came on each day, as columns. Pure. */
export type DayCount = { day: string; kind: string; memories: number };
export type Column = { day: string; total: number; kinds: Record<string, number> };
const DAY = 86_400_000;

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/** One column for every day up to `today`, also for those on which nothing came. */
export function fillDays(counts: DayCount[], today: string, days: number): Column[] {
  const columns = new Map<string, Column>();
  const last = Date.parse(`${today}T00:00:00Z`);
  for (let back = days - 1; back >= 0; back -= 1) {
    const day = dayOf(last - back * DAY);
    columns.set(day, { day, total: 0, kinds: {} });
  }
  for (const { day, kind, memories } of counts) {
    const column = columns.get(day);
    if (!column) continue;
    column.total += memories;
    column.kinds[kind] = (column.kinds[kind] ?? 0) + memories;
  }
  return [...columns.values()];
}

/** The period of two columns, whichever was touched first: from the first day to the end of the last. */
export function period(one: string, other: string): { since: string; until: string } {
  const [first, last] = one <= other ? [one, other] : [other, one];
  return { since: first, until: dayOf(Date.parse(`${last}T00:00:00Z`) + DAY) };
}
