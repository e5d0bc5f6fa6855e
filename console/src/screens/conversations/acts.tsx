/** Archive, restore, delete, purge: what can be done depends on the state; what removes shows first how much goes. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, take } from '../../api/client';
import { useRights } from '../../api/me';
import type { Scope } from '../../parts/address';
import { Counts } from '../../parts/counts';
import { Confirm } from '../../parts/dialog';
import { Answer } from '../../parts/states';
import { useWords } from '../../words';
import { type Conversation, useConversation, useRemoval } from './queries';

const OFFERED = {
  active: ['archive', 'delete'],
  archived: ['restore', 'delete'],
  deleted: ['restore', 'purge'],
  purging: [],
} as const;
type Act = 'archive' | 'restore' | 'delete' | 'purge';
type Path = { conversation: string };

const setState = (scope: Scope, path: Path, state: 'archived' | 'active') =>
  take(api.PATCH('/v1/conversations/{conversation}', { params: { path }, body: { ...scope, state } }));
const perform: Record<Act, (scope: Scope, path: Path) => Promise<unknown>> = {
  archive: (scope, path) => setState(scope, path, 'archived'),
  restore: (scope, path) => setState(scope, path, 'active'),
  delete: (scope, path) => take(api.DELETE('/v1/conversations/{conversation}', { params: { path, query: scope } })),
  purge: (scope, path) => take(api.POST('/v1/conversations/{conversation}/purge', { params: { path }, body: scope })),
};

export function Acts({ scope, id, onGone }: { scope: Scope; id: string; onGone: () => void }) {
  const words = useWords();
  const { writes } = useRights();
  const queries = useQueryClient();
  const [asked, setAsked] = useState<Act | null>(null);
  const about = useConversation(scope, id);
  if (!writes || !about.data) return null;
  const finish = async (act: Act) => {
    await perform[act](scope, { conversation: id });
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
        <ActDialog
          scope={scope}
          conversation={about.data}
          act={asked}
          onClose={() => setAsked(null)}
          onConfirm={() => finish(asked)}
        />
      )}
    </div>
  );
}

type ActProps = {
  scope: Scope;
  conversation: Conversation;
  act: Act;
  onClose: () => void;
  onConfirm: () => Promise<unknown>;
};

function ActDialog({ scope, conversation, act, onClose, onConfirm }: ActProps) {
  const words = useWords().conversations;
  const removes = act === 'purge' || act === 'delete' ? act : null;
  const removal = useRemoval(scope, conversation.id, removes);
  return (
    <Confirm
      title={words.acts[act]}
      action={words.acts[act]}
      destroys={removes !== null}
      disabled={removes !== null && !removal.data}
      {...(act === 'purge' && { typed: conversation.name || conversation.id })}
      onClose={onClose}
      onConfirm={onConfirm}
    >
      <p>
        <bdi>{conversation.name || conversation.id}</bdi>
      </p>
      <p>{words.actSays[act]}</p>
      {removes && (
        <>
          <h3>{words.goes[removes]}</h3>
          <Answer query={removal} lines={2}>
            {(counts) => <Counts counts={counts} names={words.counted} />}
          </Answer>
        </>
      )}
    </Confirm>
  );
}
