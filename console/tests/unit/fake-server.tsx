/** A server that answers as a test tells it, and the console in front of it. */
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, configure, render } from '@testing-library/react';
import { vi } from 'vitest';
import { App } from '../../src/app';

configure({ asyncUtilTimeout: 30_000 }); // a busy machine takes longer than a second

type Answers = Record<string, unknown | (() => Response)>;
export const ME = { name: 'test', rights: ['read', 'write'], trust: 50, agent: null, user: null, expires_at: null };

export const problem = (status: number, code: string, detail: string) => () =>
  new Response(JSON.stringify({ status, code, detail, errors: [] }), {
    status,
    headers: { 'x-request-id': 'r42', 'retry-after': '0' },
  });

/** Show the console at an address; what is not answered is not found. Gives what was asked. */
export function open(address: string, answers: Answers): string[] {
  cleanup();
  const asked: string[] = [];
  vi.stubGlobal('fetch', async (input: Request | URL | string, init?: RequestInit) => {
    const url = new URL(input instanceof Request ? input.url : String(input));
    const method = input instanceof Request ? input.method : (init?.method ?? 'GET');
    const name = `${method} ${url.pathname}`;
    asked.push(name);
    const answer = answers[name];
    if (typeof answer === 'function') return answer();
    if (answer === undefined) return problem(404, 'not_found', 'There is no such thing.')();
    return new Response(JSON.stringify(answer), { headers: { 'content-type': 'application/json' } });
  });
  history.replaceState(null, '', address);
  localStorage.setItem('recollect.language', 'en');
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>,
  );
  return asked;
}
