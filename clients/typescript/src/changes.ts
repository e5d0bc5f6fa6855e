/** The changes of one scope, followed over dropped connections: each once and in order. */
import type { Recollect, Schemas } from './client.js';
import { readEvents } from './events.js';
import { Problem, type ProblemCode, readProblem } from './problem.js';
import { wait } from './retry.js';

export type Change = {
  /** From where to follow on: give it as `since`. */
  cursor: string;
  number: number;
  at: string;
  operation: string;
  ids: string[];
};
export type FollowOptions = {
  /** The cursor of the last change that was seen; from now on if left out. */
  since?: string;
  signal?: AbortSignal;
  /** Called when following begins, and again after each connection that was lost. */
  onBegan?: (cursor: string) => void;
  /** Waits before it connects again; a test gives its own. */
  pause?: (seconds: number, signal: AbortSignal) => Promise<void>;
};
type Scope = Pick<Schemas['ScopeBody'], 'agent'> & { user: string };

const LONGEST_WAIT_SECONDS = 8;

/** Follow until the signal is aborted. What was refused is thrown: 410 says that the cursor is too old, and what was missed must be read anew. */
export async function* followChanges(
  recollect: Recollect,
  scope: Scope,
  { since = '', signal = new AbortController().signal, onBegan, pause = wait }: FollowOptions = {},
): AsyncGenerator<Change> {
  let cursor = since;
  let failures = 0;
  while (!signal.aborted) {
    try {
      for await (const { event, data } of connectOnce(recollect, scope, cursor, signal)) {
        failures = 0;
        if (event === 'problem') throw asProblem(data);
        const change = JSON.parse(data) as Change;
        cursor = change.cursor;
        if (event === 'change') yield change;
        else onBegan?.(cursor);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && !error.passing) throw error;
    }
    failures += 1;
    const seconds = Math.random() * Math.min(LONGEST_WAIT_SECONDS, 0.2 * 2 ** failures);
    await pause(seconds, signal).catch(() => undefined);
  }
}

/** One connection; it ends when the server drains, and then one connects again. */
async function* connectOnce(recollect: Recollect, scope: Scope, cursor: string, signal: AbortSignal) {
  const query = new URLSearchParams({ ...scope, ...(cursor && { since: cursor }) });
  const headers = { ...recollect.headers, Accept: 'text/event-stream' };
  const request = new Request(`${recollect.url}/v1/changes?${query}`, { headers, signal, cache: 'no-store' });
  const answer = await recollect.send(request).catch((error: unknown) => {
    throw signal.aborted ? error : new Problem(0, 'unreachable', 'The server is unreachable.');
  });
  if (!answer.ok) throw await readProblem(answer);
  if (answer.body) yield* readEvents(answer.body);
}

function asProblem(data: string): Problem {
  const body = JSON.parse(data) as { status: number; code: ProblemCode; detail: string };
  return new Problem(body.status, body.code, body.detail);
}
