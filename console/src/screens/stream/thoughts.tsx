/** Thoughts, the newest first, each as a tree over what it was made from. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type Memory, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { Content, Importance } from '../../parts/memory';
import { Answer, Empty } from '../../parts/states';
import { Trails } from '../../parts/trail-view';
import { useWords } from '../../words';

export function Thoughts({ scope, onOpen }: { scope: Scope; onOpen: (id: string) => void }) {
  const words = useWords();
  const thoughts = useQuery({
    queryKey: ['thoughts', scope],
    queryFn: ({ signal }) => {
      const query = { ...scope, kinds: ['thought' as const], order: 'newest' as const, limit: 30 };
      return take(api.GET('/v1/memories', { params: { query }, signal }));
    },
  });
  return (
    <section className="card thoughts">
      <h2>{words.stream.thoughts}</h2>
      <Answer query={thoughts} lines={4}>
        {({ memories }) =>
          memories.length === 0 ? (
            <Empty>{words.stream.noThoughts}</Empty>
          ) : (
            <ul>
              {memories.map((memory, place) => (
                <Thought key={memory.id} scope={scope} memory={memory} first={place === 0} onOpen={onOpen} />
              ))}
            </ul>
          )
        }
      </Answer>
    </section>
  );
}

type ThoughtProps = { scope: Scope; memory: Memory; first: boolean; onOpen: (id: string) => void };

function Thought({ scope, memory, first, onOpen }: ThoughtProps) {
  const words = useWords();
  const [open, setOpen] = useState(first);
  return (
    <li>
      <button type="button" className="plain" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Content memory={memory} most={400} />
      </button>
      <p className="meta">
        <Importance value={memory.importance} />
        {words.stream.depth(memory.depth)}
      </p>
      {open && <Trails scope={scope} id={memory.id} onOpen={onOpen} />}
    </li>
  );
}
