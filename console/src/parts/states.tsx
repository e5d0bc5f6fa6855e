/** What a screen shows while there is nothing to show: loading, empty, failed, refused. */
import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Problem } from '../api/client';
import { useWords } from '../words';
import { Icon } from './icons';

/** Grey lines in the shape of what comes; they appear after 200 ms, so that a fast answer does not flicker. */
export function Loading({ lines = 4 }: { lines?: number }) {
  const words = useWords();
  const widths = Array.from({ length: lines }, (_, line) => 92 - ((line * 37) % 45));
  return (
    <div className="loading" role="status">
      <span className="unseen">{words.states.loading}</span>
      {widths.map((width) => (
        <i key={width} style={{ width: `${width}%` }} aria-hidden="true" />
      ))}
    </div>
  );
}

/** One sentence that says how it fills, and the call to copy. */
export function Empty({ children, call }: { children: ReactNode; call?: string }) {
  return (
    <div className="empty">
      <p>{children}</p>
      {call && <Copyable text={call} />}
    </div>
  );
}

export function Copyable({ text }: { text: string }) {
  const words = useWords();
  const [copied, setCopied] = useState(false);
  const copy = () => navigator.clipboard?.writeText(text).then(() => setCopied(true));
  return (
    <div className="copyable">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard */}
      <pre tabIndex={0}>{text}</pre>
      <button type="button" className="quiet" onClick={copy}>
        <Icon name="copy" />
        {copied ? words.states.copied : words.states.copy}
      </button>
    </div>
  );
}

export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  const words = useWords();
  const refused = error instanceof Problem && error.status === 403;
  const fields = error instanceof Problem ? error.errors : [];
  return (
    <div role="alert" className={refused ? 'notice refused' : 'notice failed'}>
      <p>
        <b>{refused ? words.states.refused : words.states.failed}</b> {error.message}
      </p>
      {fields.map((each) => (
        <p key={each.field}>
          <code>{each.field}</code> {each.message}
        </p>
      ))}
      <p className="actions">
        {error instanceof Problem && error.requestId && (
          <small>
            {words.states.requestId} <code>{error.requestId}</code>
          </small>
        )}
        {retry && !refused && (
          <button type="button" onClick={retry}>
            {words.states.retry}
          </button>
        )}
      </p>
    </div>
  );
}

type AnswerProps<T> = {
  query: Pick<UseQueryResult<T>, 'data' | 'error' | 'isPending' | 'refetch'>;
  lines?: number;
  children: (data: T) => ReactNode;
};

/** What a query has to show, in whichever state it is. */
export function Answer<T>({ query, lines, children }: AnswerProps<T>) {
  if (query.error) return <Failure error={query.error} retry={() => void query.refetch()} />;
  if (query.data === undefined) return query.isPending ? <Loading {...(lines ? { lines } : {})} /> : null;
  return <>{children(query.data)}</>;
}
