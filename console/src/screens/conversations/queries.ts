/** What Conversations asks. */
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { api, type Schemas, take } from '../../api/client';
import type { Scope } from '../../parts/address';

export type Conversation = Schemas['ConversationInfo'];
export type Message = Schemas['Message'];
export type Segment = Schemas['SegmentRecord'];
export type Prompt = Schemas['Context'];
export const STATES = ['active', 'archived', 'deleted'] as const;
export type State = (typeof STATES)[number];

export const useConversations = (scope: Scope, state: State) =>
  useInfiniteQuery({
    queryKey: ['conversations', scope, state],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) => {
      const query = { ...scope, state, limit: 50, ...(pageParam && { cursor: pageParam }) };
      return take(api.GET('/v1/conversations', { params: { query }, signal }));
    },
    getNextPageParam: (last) => last.next_cursor || undefined,
  });

export const useMessages = (scope: Scope, conversation: string) =>
  useInfiniteQuery({
    queryKey: ['messages', scope, conversation],
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) => {
      const params = { path: { conversation }, query: { ...scope, after: pageParam, limit: 200 } };
      return take(api.GET('/v1/conversations/{conversation}/messages', { params, signal }));
    },
    getNextPageParam: (last) => last.next ?? undefined,
  });

export const useSegments = (scope: Scope, conversation: string) =>
  useQuery({
    queryKey: ['segments', scope, conversation],
    queryFn: async ({ signal }) => {
      const params = { path: { conversation }, query: { ...scope, limit: 200 } };
      return (await take(api.GET('/v1/conversations/{conversation}/segments', { params, signal }))).segments;
    },
  });

export const useConversation = (scope: Scope, conversation: string) =>
  useQuery({
    queryKey: ['conversation', scope, conversation],
    queryFn: ({ signal }) => {
      const params = { path: { conversation }, query: scope };
      return take(api.GET('/v1/conversations/{conversation}', { params, signal }));
    },
  });

export type Question = { text: string; budget: number; leaf: string | null };

/** The prompt that a program would get, and what it leaves out; nothing counts as recalled. */
export const usePrompt = (scope: Scope, conversation: string, { text, budget, leaf }: Question) =>
  useQuery({
    queryKey: ['context', scope, conversation, text, budget, leaf],
    enabled: text.trim() !== '',
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => {
      const body = {
        ...scope,
        conversation,
        text,
        budget,
        touch: false,
        keep: false,
        explain: true,
        ...(leaf && { leaf }),
      };
      return take(api.POST('/v1/context', { body, signal }));
    },
  });

/** How much would go with a conversation, by what it is; nothing is done. */
export const useRemoval = (scope: Scope, conversation: string, act: 'delete' | 'purge' | null) =>
  useQuery({
    queryKey: ['removal', scope, conversation, act],
    enabled: act !== null,
    staleTime: 0,
    queryFn: async ({ signal }) => {
      const [path, asked] = [{ conversation }, { ...scope, dry_run: true }];
      if (act === 'delete') {
        const params = { path, query: asked };
        return (await take(api.DELETE('/v1/conversations/{conversation}', { params, signal }))).hidden;
      }
      const params = { path };
      return (await take(api.POST('/v1/conversations/{conversation}/purge', { params, body: asked, signal }))).removed;
    },
  });
