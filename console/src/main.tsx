import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createRoot } from 'react-dom/client';
import { Problem } from './api/client';
import { App } from './app';
import './styles/index.css';

/** A session that ended shows the sign-in; the address stays. */
function onError(error: Error): void {
  if (error instanceof Problem && error.status === 401) void queries.invalidateQueries({ queryKey: ['me'] });
}

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: (error, query) => query.queryKey[0] !== 'me' && onError(error) }),
  // The client itself tries again where the server is unavailable.
  defaultOptions: {
    queries: { staleTime: 30_000, refetchOnWindowFocus: false, retry: false },
    mutations: { onError },
  },
});
/** A page from before an update asks for files that are gone: it is loaded anew, once. */
const RELOADED = 'recollect.reloaded';
addEventListener('vite:preloadError', (event) => {
  const before = Number(sessionStorage.getItem(RELOADED) ?? 0);
  if (Date.now() - before < 60_000) return;
  event.preventDefault();
  sessionStorage.setItem(RELOADED, String(Date.now()));
  location.reload();
});

const root = document.getElementById('root');
if (root)
  createRoot(root).render(
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>,
  );
