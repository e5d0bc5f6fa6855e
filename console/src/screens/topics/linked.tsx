/** The memories that are filed under a topic, the newest first. */
import { useQuery } from '@tanstack/react-query';
import { api, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { day } from '../../parts/format';
import { OpenMemory } from '../../parts/memory';
import { Answer } from '../../parts/states';
import { useWords } from '../../words';

const MOST = 100;

export function Linked({ scope, path, onOpen }: { scope: Scope; path: string; onOpen: (id: string) => void }) {
  const words = useWords();
  const linked = useQuery({
    queryKey: ['linked', scope, path],
    queryFn: async ({ signal }) => {
      const { links } = await take(
        api.GET('/v1/topics/links', { params: { query: { ...scope, path, limit: MOST } }, signal }),
      );
      const ids = [...new Set(links.map((link) => link.memory_id))];
      if (ids.length === 0) return [];
      return (await take(api.GET('/v1/memories', { params: { query: { ...scope, ids } }, signal }))).memories;
    },
  });
  return (
    <Answer query={linked} lines={3}>
      {(memories) =>
        memories.length === 0 ? (
          <p className="soft">{words.topics.noneHere}</p>
        ) : (
          <ul className="trail">
            {memories.map((memory) => (
              <li key={memory.id}>
                <OpenMemory memory={memory} onOpen={onOpen}>
                  <span className="soft small">{day(memory.occurred_at)} </span>
                </OpenMemory>
              </li>
            ))}
          </ul>
        )
      }
    </Answer>
  );
}
