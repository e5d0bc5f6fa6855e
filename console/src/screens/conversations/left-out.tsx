/** What was found and did not get into the prompt, and why. */
import { useQuery } from '@tanstack/react-query';
import { api, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { Content, Kind } from '../../parts/memory';
import { useWords } from '../../words';
import type { Prompt } from './queries';

type Props = { scope: Scope; prompt: Prompt; onOpen: (id: string) => void };

export function LeftOut({ scope, prompt, onOpen }: Props) {
  const words = useWords();
  const out = prompt.left_out;
  const ids = (out?.hits ?? []).map((hit) => hit.id).slice(0, 100);
  const read = useQuery({
    queryKey: ['read', scope, ids],
    enabled: ids.length > 0,
    queryFn: async ({ signal }) => {
      const { memories } = await take(api.GET('/v1/memories', { params: { query: { ...scope, ids } }, signal }));
      return new Map(memories.map((memory) => [memory.id, memory]));
    },
  });
  if (!out || (out.hits.length === 0 && out.turns === 0))
    return <p className="soft">{words.conversations.nothingOut}</p>;
  return (
    <ul className="entries">
      {out.turns > 0 && (
        <li>
          <span className="kind message">{words.conversations.parts.history}</span>
          <span>{words.conversations.turnsOut(out.turns)}</span>
          <span className="number soft">{out.tokens}</span>
        </li>
      )}
      {out.hits.map((hit) => {
        const memory = read.data?.get(hit.id);
        return (
          <li key={hit.id}>
            {memory ? <Kind kind={memory.kind} /> : <span />}
            <button type="button" className="plain" onClick={() => onOpen(hit.id)}>
              <span className="lines">{memory ? <Content memory={memory} most={300} /> : '…'}</span>
              <small className="soft">{words.conversations.why[hit.why]}</small>
            </button>
            <span className="number soft">{hit.tokens}</span>
          </li>
        );
      })}
    </ul>
  );
}
