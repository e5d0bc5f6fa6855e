/** Erase a user over all agents: first what would go is counted, then the name is typed. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, take } from '../../api/client';
import { Counts } from '../../parts/counts';
import { Confirm } from '../../parts/dialog';
import { Answer } from '../../parts/states';
import { useWords } from '../../words';

const useErasure = (user: string) =>
  useQuery({
    queryKey: ['erasure', user],
    enabled: user !== '',
    staleTime: 0,
    retry: false,
    queryFn: ({ signal }) => take(api.POST('/v1/erasures', { body: { user, dry_run: true }, signal })),
  });

export function EraseUser({ onClose }: { onClose: () => void }) {
  const words = useWords();
  const queries = useQueryClient();
  const [user, setUser] = useState('');
  const [counted, setCounted] = useState('');
  const foreseen = useErasure(counted);
  const erase = async () => {
    await take(api.POST('/v1/erasures', { body: { user: counted } }));
    await queries.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'me' });
  };
  return (
    <Confirm
      title={words.keys.erase}
      action={words.keys.erase}
      destroys
      disabled={!foreseen.data || user !== counted}
      {...(foreseen.data && user === counted && { typed: counted })}
      onClose={onClose}
      onConfirm={erase}
    >
      <p>{words.keys.eraseSays}</p>
      <div className="bar">
        <label className="field grow">
          <span>{words.keys.erased}</span>
          <input value={user} onChange={(event) => setUser(event.target.value)} autoComplete="off" />
        </label>
        <button type="button" disabled={user === ''} onClick={() => setCounted(user)}>
          {words.keys.countFirst}
        </button>
      </div>
      {counted !== '' && user === counted && (
        <Answer query={foreseen} lines={2}>
          {(found) => (
            <>
              <h3>{words.keys.goes(found.scopes)}</h3>
              <Counts counts={found.removed} names={words.keys.counted} />
            </>
          )}
        </Answer>
      )}
    </Confirm>
  );
}
