/** What Ask asks: a recall and why, kept or not, and the same with other weights. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, type Schemas, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { toInstant } from '../../parts/format';
import type { Weights } from './weights';

export type Explanation = Schemas['Explanation'];
export type Placing = Schemas['RankedCandidate'];
export type Cue = { text: string; asOf: string | null; at: string | null };

export const LIMIT = 10;

const body = (scope: Scope, { text, asOf, at }: Cue) => {
  const [as_of, moment] = [toInstant(asOf), toInstant(at)];
  return { ...scope, text, limit: LIMIT, touch: false, ...(as_of && { as_of }), ...(moment && { at: moment }) };
};

/** Recall, and have it kept, so that it can be replayed; gives its id. */
export async function keepRecall(scope: Scope, cue: Cue): Promise<string | null> {
  return (await take(api.POST('/v1/recall', { body: { ...body(scope, cue), keep: true } }))).recall_id;
}

/** A recall that is explained without being kept: nothing is written, so that reading is enough. */
async function explain(scope: Scope, cue: Cue, weights: Weights, signal: AbortSignal): Promise<Explanation> {
  const asked = { ...body(scope, cue), keep: false, explain: true, weights };
  const { explanation } = await take(api.POST('/v1/recall', { body: asked, signal }));
  if (!explanation) throw new Error('The recall was not explained.');
  return explanation;
}

/** The recall of the address: a kept one as it was, or the cue asked now. */
export const useExplanation = (scope: Scope, cue: Cue, recall: string | null) =>
  useQuery({
    queryKey: ['explanation', scope, recall ?? cue],
    enabled: recall !== null || cue.text !== '',
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }): Promise<Explanation> =>
      recall === null
        ? explain(scope, cue, {}, signal)
        : take(api.GET('/v1/recalls/{recall_id}', { params: { path: { recall_id: recall }, query: scope }, signal })),
  });

/** The same with other weights: a kept recall is replayed, another asked anew. Only the latest answer counts. */
export const useReplay = (
  scope: Scope,
  cue: Cue,
  recall: string | null,
  weights: Weights,
  first: Explanation | undefined,
) =>
  useQuery({
    queryKey: ['replay', scope, recall ?? cue, weights],
    enabled: first !== undefined && Object.keys(weights).length > 0,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Placing[]> => {
      if (recall !== null) {
        const params = { path: { recall_id: recall } };
        const again = await take(
          api.POST('/v1/recalls/{recall_id}/replay', { params, body: { ...scope, weights }, signal }),
        );
        return again.placings;
      }
      const places = new Map(hitsOf(first?.placings ?? []).map((hit) => [hit.id, hit.rank]));
      const again = await explain(scope, cue, weights, signal);
      return hitsOf(again.placings).map((hit) => ({ ...hit, before: places.get(hit.id) ?? null }));
    },
  });

export const useKeptRecalls = (scope: Scope) =>
  useQuery({
    queryKey: ['recalls', scope],
    queryFn: ({ signal }) => take(api.GET('/v1/recalls', { params: { query: { ...scope, limit: 30 } }, signal })),
  });

export const hitsOf = (placings: Placing[]): Placing[] =>
  placings.filter((placing) => placing.fate === 'hit').sort((a, b) => a.rank - b.rank);
