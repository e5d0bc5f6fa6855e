/** What Knowledge asks: always one entity's neighbourhood, never the whole graph. */
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { api, type Schemas, take } from '../../api/client';
import type { Scope } from '../../parts/address';

export type Entity = Schemas['Entity'];
export type Relation = Schemas['Relation'];
export type Fact = Schemas['Fact'];
export type Times = { as_of?: string; at?: string };
const BEAM = 150;

export const useEntities = (scope: Scope, search: string) =>
  useInfiniteQuery({
    queryKey: ['entities', scope, search],
    initialPageParam: '',
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) => {
      const query = { ...scope, limit: 100, ...(search && { search }), ...(pageParam && { cursor: pageParam }) };
      // Where nothing is looked for, the list begins with what most is known of.
      return search
        ? take(api.GET('/v1/entities', { params: { query }, signal }))
        : take(api.GET('/v1/entities/by-facts', { params: { query }, signal }));
    },
    getNextPageParam: (last) => last.next_cursor ?? undefined,
  });

export const useEntity = (scope: Scope, id: string, { as_of }: Times) =>
  useQuery({
    queryKey: ['entity', scope, id, as_of],
    queryFn: ({ signal }) => {
      const params = { path: { entity_id: id }, query: { ...scope, ...(as_of && { as_of }) } };
      return take(api.GET('/v1/entities/{entity_id}', { params, signal }));
    },
  });

export const useNeighbours = (scope: Scope, id: string, hops: number, times: Times) =>
  useQuery({
    queryKey: ['neighbours', scope, id, hops, times],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => {
      const params = { path: { entity_id: id }, query: { ...scope, ...times, hops, beam: BEAM } };
      return take(api.GET('/v1/entities/{entity_id}/neighbours', { params, signal }));
    },
  });

export const useTimeline = (scope: Scope, id: string, { as_of }: Times) =>
  useInfiniteQuery({
    queryKey: ['timeline', scope, id, as_of],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) => {
      const query = { ...scope, limit: 100, ...(as_of && { as_of }), ...(pageParam && { cursor: pageParam }) };
      return take(api.GET('/v1/entities/{entity_id}/timeline', { params: { path: { entity_id: id }, query }, signal }));
    },
    getNextPageParam: (last) => last.next_cursor || undefined,
  });

export const useFactVersions = (scope: Scope, id: string) =>
  useQuery({
    queryKey: ['fact-versions', scope, id],
    queryFn: async ({ signal }) => {
      const params = { path: { fact_id: id }, query: scope };
      return (await take(api.GET('/v1/facts/{fact_id}/versions', { params, signal }))).versions;
    },
  });

export const useProposals = (scope: Scope, enabled: boolean) =>
  useQuery({
    queryKey: ['proposals', scope],
    enabled,
    queryFn: async ({ signal }) => {
      const query = { ...scope, limit: 10 };
      return (await take(api.GET('/v1/merges/proposed', { params: { query }, signal }))).proposals;
    },
  });
