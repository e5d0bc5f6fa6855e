/** What is shown follows what is stored: one stream per tab, closed while the tab is hidden. */
import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Scope } from '../parts/address';
import { Problem, recollect } from './client';

/** What a change leaves as it was: who is signed in, and what was asked of a moment that is over. */
const LASTING = new Set([
  'me',
  'status',
  'explanation',
  'replay',
  'forget',
  'keys',
  'erasures',
  'receipts',
  'ledger',
  'scopes',
]);
/** Many changes in a row are read anew once. */
const TOGETHER_MS = 400;

export function useLive(scope: Scope | null): void {
  const queries = useQueryClient();
  const agent = scope?.agent;
  const user = scope?.user;
  useEffect(() => {
    if (agent === undefined || user === undefined) return;
    let stop = new AbortController();
    const follow = () => {
      stop.abort();
      stop = new AbortController();
      if (!document.hidden) void followScope(queries, { agent, user }, stop.signal);
    };
    follow();
    document.addEventListener('visibilitychange', follow);
    return () => {
      document.removeEventListener('visibilitychange', follow);
      stop.abort();
    };
  }, [queries, agent, user]);
}

async function followScope(queries: QueryClient, scope: Scope, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const refresh = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void readAnew(queries), TOGETHER_MS);
  };
  let connections = 0;
  const onBegan = () => {
    connections += 1;
    // What changed while nobody listened is in no stream of this page.
    if (connections > 1) refresh();
  };
  try {
    for await (const _change of recollect.mind(scope.agent, scope.user).changes({ signal, onBegan })) refresh();
  } catch (error) {
    // Whoever may not follow, or fell too far behind, still sees what is asked for.
    if (!(error instanceof Problem)) throw error;
    if (error.code === 'cursor_expired') refresh();
  }
}

const readAnew = (queries: QueryClient) =>
  queries.invalidateQueries({ predicate: ({ queryKey }) => !LASTING.has(String(queryKey[0])) });
