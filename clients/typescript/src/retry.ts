/** A fetch that tries again where the server or the network is unavailable, and never stores anything twice by it. */
import { Problem, UNAVAILABLE } from './problem.js';

export type Fetch = (request: Request) => Promise<Response>;
export type RetryOptions = {
  /** How often a request is sent at most; 4. */
  attempts?: number;
  /** How long one attempt may take; 60 seconds. */
  timeoutSeconds?: number;
  /** Waits between attempts; a test gives its own. */
  pause?: (seconds: number, signal: AbortSignal) => Promise<void>;
};

const LONGEST_WAIT_SECONDS = 8;
/** Writes that the server knows again by their key, so that a repeated one answers as the first did. */
const KEYED = new Set(['/v1/memories', '/v1/load', '/v1/messages', '/v1/facts', '/v1/items']);
/** What must not be asked twice: a model is paid for it, it goes on although the answer was lost, or it has a secret. */
const ONCE = new Set(['/v1/chat', '/v1/import', '/v1/erasures', '/v1/forget/everything', '/v1/keys']);

/** Wrap a fetch: idempotency keys where the server takes them, and attempts with growing waits. */
export function retrying(send: Fetch, { attempts = 4, timeoutSeconds = 60, pause = wait }: RetryOptions = {}): Fetch {
  return async (request) => {
    const path = apiPath(request.url);
    if (request.method === 'POST' && KEYED.has(path) && !request.headers.has('idempotency-key'))
      request.headers.set('idempotency-key', crypto.randomUUID());
    const single = request.method === 'POST' && ONCE.has(path);
    const most = single ? 1 : attempts;
    const patience = single ? timeoutSeconds * 10 : timeoutSeconds;
    for (let attempt = 1; ; attempt += 1) {
      const last = attempt >= most;
      const answer = await once(send, last ? request : request.clone(), patience, last);
      if (answer && (last || !UNAVAILABLE.has(answer.status))) return answer;
      await pause(waitSeconds(attempt, answer, Math.random()), request.signal);
    }
  };
}

/** Send one attempt; null if no answer came and there is another attempt to make. */
async function once(send: Fetch, request: Request, seconds: number, last: boolean): Promise<Response | null> {
  const limit = AbortSignal.timeout(seconds * 1000);
  try {
    return await send(new Request(request, { signal: AbortSignal.any([request.signal, limit]) }));
  } catch (error) {
    if (request.signal.aborted) throw error;
    if (!last) return null;
    const why = limit.aborted
      ? `No answer within ${seconds} seconds; it may still come.`
      : `Cannot reach ${new URL(request.url).origin}. Is the server running? Start one with \`recollect up\`.`;
    throw new Problem(0, 'unreachable', why);
  }
}

/** How long to wait after so many attempts: at random, so that clients do not come back together. */
export function waitSeconds(attempt: number, answer: Response | null, chance: number): number {
  const asked = Number(answer?.headers.get('retry-after') ?? 0);
  const drawn = chance * Math.min(LONGEST_WAIT_SECONDS, 0.2 * 2 ** (attempt - 1));
  return Math.max(drawn, Number.isFinite(asked) ? Math.min(LONGEST_WAIT_SECONDS, asked) : 0);
}

/** The path as the API names it, wherever a proxy has put it. */
function apiPath(url: string): string {
  const { pathname } = new URL(url);
  return pathname.slice(Math.max(0, pathname.indexOf('/v1/')));
}

export function wait(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, seconds * 1000);
    signal.addEventListener('abort', stop, { once: true });
  });
}
