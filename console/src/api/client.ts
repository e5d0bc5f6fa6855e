/** The console's way to the API: the client of clients/typescript, with the header that no foreign page can send. */
import { connect, Problem, type Schemas } from 'recollect-memory';

export { Problem, take } from 'recollect-memory';
export type { Schemas };
export type Memory = Schemas['Memory'];

/** Where the page was served: `<base>` says it, whatever path a proxy has put it under. */
export const PAGE = new URL(document.baseURI);
export const ROUTER_BASE = PAGE.pathname.replace(/\/$/, '');
const HEADERS = { 'X-Recollect-Console': '1' };

export const recollect = connect({ url: new URL('..', PAGE).href, headers: HEADERS, attempts: 3 });
export const { api } = recollect;

/** Who is signed in. */
export type Me = {
  name: string;
  rights: string[];
  trust: number;
  agent: string | null;
  user: string | null;
  expires_at: string | null;
};

/** Exchange a key for a session; the page forgets the key. */
export async function signIn(key: string): Promise<void> {
  await session('POST', { key });
}

/** Sign in by the link that `recollect up` prints; it works once. */
export async function signInByLink(link: string): Promise<void> {
  await session('POST', { link });
}

/** Take a link's secret out of the address, so that it is in no history. */
export function takeLink(): string | null {
  const found = /^#link=([\w-]{1,100})$/.exec(location.hash)?.[1] ?? null;
  if (found) history.replaceState(null, '', location.pathname + location.search);
  return found;
}

export async function signOut(): Promise<void> {
  await session('DELETE');
}

async function session(method: string, body?: object): Promise<void> {
  const answer = await fetch(new URL('session', PAGE), {
    method,
    headers: { ...HEADERS, ...(body ? { 'Content-Type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    const requestId = answer.headers.get('x-request-id') ?? '';
    throw new Problem(answer.status, problem.code ?? 'error', problem.detail ?? answer.statusText, [], requestId);
  }
}
