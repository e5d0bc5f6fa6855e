/** Archive, restore, delete, purge: what can be done depends on the state; what cannot be undone asks for the name. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, take } from '../../api/client';
import { useRights } from '../../api/me';
import type { Scope } from '../../parts/address';
import { Confirm } from '../../parts/dialog';
import { useWords } from '../../words';

const OFFERED = {
  active: ['archive', 'delete'],
  archived: ['restore', 'delete'],
  deleted: ['restore', 'purge'],
  purging: [],
} as const;
type Act = 'archive' | 'restore' | 'delete' | 'purge';

export function Acts({ scope, id, onGone }: { scope: Scope; id: string; onGone: () => void }) {
  const words = useWords();
  const { writes } = useRights();
  const queries = useQueryClient();
  const [asked, setAsked] = useState<Act | null>(null);
  const params = { path: { conversation: id } };
  const about = useQuery({
    queryKey: ['conversation', scope, id],
    queryFn: ({ signal }) =>
      take(api.GET('/v1/conversations/{conversation}', { params: { ...params, query: scope }, signal })),
  });
  if (!writes || !about.data) return null;
  const perform = async (act: Act) => {
    await api.POST(`/v1/conversations/{conversation}/${act}`, { params, body: scope });
    if (act !== 'archive') onGone();
    await queries.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'me' });
  };
  return (
    <div className="actions">
      {OFFERED[about.data.state].map((act) => (
        <button key={act} type="button" onClick={() => setAsked(act)}>
          {words.conversations.acts[act]} …
        </button>
      ))}
      {asked && (
        <Confirm
          title={words.conversations.acts[asked]}
          action={words.conversations.acts[asked]}
          destroys={asked === 'purge' || asked === 'delete'}
          {...(asked === 'purge' && { typed: about.data.name || about.data.id })}
          onClose={() => setAsked(null)}
          onConfirm={() => perform(asked)}
        >
          <p>
            <bdi>{about.data.name || about.data.id}</bdi>
          </p>
          <p>{words.conversations.actSays[asked]}</p>
        </Confirm>
      )}
    </div>
  );
}
