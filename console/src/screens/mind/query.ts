/** The filters of the address, as the API takes them. Pure. */
import type { operations } from 'recollect-memory';
import type { Scope } from '../../parts/address';
import { toInstant } from '../../parts/format';

export const KINDS = ['message', 'event', 'chat', 'thought', 'fact', 'summary'] as const;
export const STATES = ['current', 'in_archived', 'faded', 'past', 'withheld'] as const;
export type Query = NonNullable<operations['list_memories']['parameters']['query']>;

/** A day stands for its beginning on the reader's clock. */
const dayStart = (day: string | null): string | undefined => toInstant(day ? `${day}T00:00` : null);

export function toQuery(scope: Scope, filters: URLSearchParams): Query {
  const kinds = KINDS.filter((kind) => filters.getAll('kind').join(',').split(',').includes(kind));
  const importance = Number(filters.get('importance') ?? 0);
  const since = dayStart(filters.get('since'));
  const until = dayStart(filters.get('until'));
  const state = STATES.find((each) => each === filters.get('state'));
  const words = filters.get('words');
  return {
    ...scope,
    order: 'newest',
    limit: 100,
    ...(kinds.length > 0 && { kinds }),
    ...(importance > 1 && { min_importance: importance }),
    ...(since && { since }),
    ...(until && { until }),
    ...(state && state !== 'current' && { state }),
    ...(words && { words }),
  } as Query;
}
