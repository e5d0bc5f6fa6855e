/** What a prompt's budget of tokens is spent on. Pure. */
export const BUDGET_PARTS = ['system', 'summary', 'memories', 'history', 'cue', 'framing'] as const;
export type BudgetPart = (typeof BUDGET_PARTS)[number];
export type Spending = Record<BudgetPart, number> & { total: number; budget: number };
export type BudgetSegment = { part: BudgetPart | 'free'; tokens: number; from: number; width: number };

/** Lay the spending along one line, in per cent of the budget; what is free comes last. */
export function layBudget(spending: Spending): BudgetSegment[] {
  const whole = Math.max(spending.budget, spending.total, 1);
  let from = 0;
  const laid: BudgetSegment[] = [];
  const add = (part: BudgetSegment['part'], tokens: number) => {
    const width = (tokens / whole) * 100;
    if (tokens > 0) laid.push({ part, tokens, from, width });
    from += width;
  };
  for (const part of BUDGET_PARTS) add(part, spending[part]);
  add('free', Math.max(0, spending.budget - spending.total));
  return laid;
}
