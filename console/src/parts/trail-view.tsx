/** Evidence both ways: what a memory was made from, down to the message, and what was made from it. */
import { useQuery } from '@tanstack/react-query';
import { api, type Memory, take } from '../api/client';
import { useWords } from '../words';
import type { Scope } from './address';
import { OpenMemory } from './memory';
import { Answer } from './states';
import { type Branch, growTrail } from './trail';

type Props = { scope: Scope; id: string; onOpen: (id: string) => void };

/** The evidence of a memory both ways, and its versions. */
export const useTrail = (scope: Scope, id: string) =>
  useQuery({
    queryKey: ['evidence', scope, id],
    queryFn: ({ signal }) => {
      const params = { path: { memory_id: id }, query: { ...scope, depth: 6, limit: 60 } };
      return take(api.GET('/v1/memories/{memory_id}/evidence', { params, signal }));
    },
  });

export function Trails({ scope, id, onOpen }: Props) {
  const words = useWords();
  const trail = useTrail(scope, id);
  return (
    <Answer query={trail} lines={2}>
      {({ sources, derived, whole }) => (
        <>
          <Way
            title={words.mind.madeFrom}
            none={words.mind.madeFromNothing}
            roots={growTrail(id, sources)}
            onOpen={onOpen}
          />
          <Way title={words.mind.ledTo} none={words.mind.ledToNothing} roots={growTrail(id, derived)} onOpen={onOpen} />
          {!whole && <p className="soft small">{words.mind.trailCut}</p>}
        </>
      )}
    </Answer>
  );
}

type WayProps = { title: string; none: string; roots: Branch<Memory>[]; onOpen: (id: string) => void };

function Way({ title, none, roots, onOpen }: WayProps) {
  return (
    <section className="way">
      <h3>{title}</h3>
      {roots.length === 0 ? <p className="soft small">{none}</p> : <Branches branches={roots} onOpen={onOpen} />}
    </section>
  );
}

function Branches({ branches, onOpen }: { branches: Branch<Memory>[]; onOpen: (id: string) => void }) {
  return (
    <ul className="trail">
      {branches.map(({ memory, below }) => (
        <li key={memory.id}>
          <OpenMemory memory={memory} onOpen={onOpen} />
          {below.length > 0 && <Branches branches={below} onOpen={onOpen} />}
        </li>
      ))}
    </ul>
  );
}
