/** Amounts by day and name, as stacked columns. Pure. */
export type Amount = { day: string; name: string; value: number };
export type Stack = { day: string; total: number; parts: { name: string; from: number; value: number }[] };

/** Names in one order for all days: the largest first. */
export function namesOf(amounts: Amount[]): string[] {
  const sums = new Map<string, number>();
  for (const { name, value } of amounts) sums.set(name, (sums.get(name) ?? 0) + value);
  return [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
}

export function stack(amounts: Amount[], days: string[]): Stack[] {
  const names = namesOf(amounts);
  return days.map((day) => {
    let total = 0;
    const parts = names.flatMap((name) => {
      const value = amounts.reduce((sum, each) => (each.day === day && each.name === name ? sum + each.value : sum), 0);
      if (value === 0) return [];
      total += value;
      return [{ name, from: total - value, value }];
    });
    return { day, total, parts };
  });
}
