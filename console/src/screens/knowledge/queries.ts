/** What Knowledge asks: always one entity's neighborhood, never the whole graph. */
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { api, type Schemas, take } from '../../api/client';
import type { Scope } from '../../parts/address';

export type Entity = Schemas['Entity'];
export type Fact = Schemas['Fact'];
export type Times = { as_of?: string; at?: string };
const BEAM = 150;

export const useEntities = (scope: Scope, search: string) =>
  useInfiniteQuery({
    queryKey: ['entities', scope, search],
    initialPageParam: '',
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) => {
      // Where nothing is looked for, the list begins with what most is known of.
      const wanted = search ? { search } : { order: 'facts' as const };
      const query = { ...scope, limit: 100, ...wanted, ...(pageParam && { cursor: pageParam }) };
      return take(api.GET('/v1/entities', { params: { query }, signal }));
    },
    getNextPageParam: (last) => last.next_cursor ?? undefined,
  });

export const useEntity = (scope: Scope, id: string, { as_of }: Times) =>
  useQuery({
    queryKey: ['entity', scope, id, as_of],
    queryFn: async ({ signal }) => {
      const query = { ...scope, ids: [id], ...(as_of && { as_of }) };
      return (await take(api.GET('/v1/entities', { params: { query }, signal }))).entities[0] ?? null;
    },
  });

export const useNeighbors = (scope: Scope, id: string, hops: number, times: Times) =>
  useQuery({
    queryKey: ['neighbors', scope, id, hops, times],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => {
      const params = { path: { entity_id: id }, query: { ...scope, ...times, hops, beam: BEAM } };
      return take(api.GET('/v1/entities/{entity_id}/neighbors', { params, signal }));
    },
  });

export const useTimeline = (scope: Scope, id: string, { as_of }: Times) =>
  useInfiniteQuery({
    queryKey: ['timeline', scope, id, as_of],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) => {
      const every = { about: id, at: 'any' as const, limit: 100 };
      const query = { ...scope, ...every, ...(as_of && { as_of }), ...(pageParam && { cursor: pageParam }) };
      return take(api.GET('/v1/facts', { params: { query }, signal }));
    },
    getNextPageParam: (last) => last.next_cursor ?? undefined,
  });

export const useFactVersions = (scope: Scope, id: string) =>
  useQuery({
    queryKey: ['fact-versions', scope, id],
    queryFn: async ({ signal }) => {
      const query = { ...scope, about: id, at: 'any' as const, limit: 200 };
      return (await take(api.GET('/v1/facts', { params: { query }, signal }))).facts;
    },
  });

export const useDuplicates = (scope: Scope, enabled: boolean) =>
  useQuery({
    queryKey: ['duplicates', scope],
    enabled,
    queryFn: async ({ signal }) => {
      const query = { ...scope, limit: 10 };
      return (await take(api.GET('/v1/entities/duplicates', { params: { query }, signal }))).proposals;
    },
  });
