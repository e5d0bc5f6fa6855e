import { useState } from 'react';
import { api, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { day } from '../../parts/format';
import { Content, Kind } from '../../parts/memory';
import { parts } from '../../parts/shares';
import { WhyBar, WhyList } from '../../parts/why-bar';
import { useWords } from '../../words';
import type { Placing } from './queries';

type Props = {
  scope: Scope;
  /** The kept recall, where its hits may be marked. */
  recall: string | null;
  hits: Placing[];
  moved: boolean;
  scale: { low: number; high: number };
  marked: Record<string, boolean>;
  onMark: (id: string, useful: boolean) => void;
  onOpen: (id: string) => void;
};

export function Hits(props: Props) {
  return (
    <ol className="hits">
      {props.hits.map((hit, place) => (
        <Hit key={hit.id} {...props} hit={hit} place={place + 1} />
      ))}
    </ol>
  );
}

function Hit({ hit, place, moved, scale, onOpen, ...rest }: Props & { hit: Placing; place: number }) {
  const words = useWords();
  const [open, setOpen] = useState(place === 1);
  const memory = hit.memory;
  const was = !moved || hit.before === place ? '' : hit.before === null ? words.ask.isNew : words.ask.was(hit.before);
  return (
    <li className="card">
      <div className="hit">
        <b className="place">{place}</b>
        <div>
          <button type="button" className="plain content" onClick={() => onOpen(hit.id)}>
            {memory ? (
              <span className="lines three">
                <Content memory={memory} most={600} />
              </span>
            ) : (
              <code>{hit.id}</code>
            )}
          </button>
          {memory && (
            <p className="meta">
              <Kind kind={memory.kind} />
              <time dateTime={memory.occurred_at}>{day(memory.occurred_at)}</time>
              <span>{words.ask.trust(memory.trust)}</span>
              {hit.relevance !== null && hit.relevance !== undefined && (
                <span>{words.ask.relevance(Math.round(hit.relevance * 100))}</span>
              )}
              {was && <b className="moved">{was}</b>}
              <Useful hit={hit} {...rest} />
            </p>
          )}
        </div>
        <b className="score">{hit.score.toFixed(3)}</b>
      </div>
      <button
        type="button"
        className="plain why-button"
        aria-expanded={open}
        aria-label={words.ask.why}
        onClick={() => setOpen(!open)}
      >
        <WhyBar hit={hit} low={scale.low} high={scale.high} />
      </button>
      {open && <WhyList hit={hit} />}
    </li>
  );
}

type UsefulProps = Pick<Props, 'scope' | 'recall' | 'marked' | 'onMark'> & { hit: Placing };

/** A mark that the agent can be tuned by. */
function Useful({ scope, recall, hit, marked, onMark }: UsefulProps) {
  const words = useWords();
  if (recall === null) return null;
  const useful = marked[hit.id] ?? false;
  const mark = async () => {
    const shares = Object.fromEntries(parts(hit).map((part) => [part.name, part.share]));
    const marks = [{ memory_id: hit.id, useful: !useful, shares }];
    await take(api.POST('/v1/feedback', { body: { ...scope, marks, recall_id: recall } }));
    onMark(hit.id, !useful);
  };
  return (
    <label className="useful">
      <input type="checkbox" checked={useful} onChange={() => void mark()} />
      {words.ask.useful}
    </label>
  );
}
