/** What was proposed and not returned: each with its bar and what became of it. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { Content } from '../../parts/memory';
import { Failure } from '../../parts/states';
import { WhyBar } from '../../parts/why-bar';
import { useWords } from '../../words';
import type { Placing } from './queries';

type Props = {
  scope: Scope;
  placings: Placing[];
  scale: { low: number; high: number };
  onOpen: (id: string) => void;
};
const STEP = 40;

export function Others({ scope, placings, scale, onOpen }: Props) {
  const words = useWords();
  const [open, setOpen] = useState(false);
  const [shown, setShown] = useState(STEP);
  const others = placings.filter((placing) => placing.fate !== 'hit');
  const some = others.slice(0, shown);
  const ids = some.map((placing) => placing.id);
  const read = useQuery({
    queryKey: ['read', scope, ids],
    enabled: open && ids.length > 0,
    queryFn: async ({ signal }) => {
      // Without dashes, 200 fit in a request line of 8 KB.
      const last = ids.slice(-200).map((id) => id.replaceAll('-', ''));
      const answer = await take(api.GET('/v1/memories', { params: { query: { ...scope, ids: last } }, signal }));
      return new Map(answer.memories.map((memory) => [memory.id, memory]));
    },
  });
  if (others.length === 0) return null;
  return (
    <details className="others" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{words.ask.others(others.length)}</summary>
      {read.error && <Failure error={read.error} />}
      <ol>
        {open &&
          some.map((placing) => {
            const memory = read.data?.get(placing.id);
            return (
              <li key={placing.id}>
                <button type="button" className="plain" onClick={() => onOpen(placing.id)}>
                  {memory ? (
                    <span className="lines">
                      <Content memory={memory} most={300} />
                    </span>
                  ) : (
                    <span className="soft">{placing.id.slice(-8)}</span>
                  )}
                </button>
                <span className="soft small">{words.ask.fates[placing.fate] ?? placing.fate}</span>
                <span className="score">{placing.score.toFixed(3)}</span>
                <WhyBar hit={placing} low={scale.low} high={scale.high} />
              </li>
            );
          })}
      </ol>
      {others.length > shown && shown < 200 && (
        <button type="button" onClick={() => setShown(shown + STEP)}>
          {words.states.more}
        </button>
      )}
    </details>
  );
}
