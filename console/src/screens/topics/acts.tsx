/** Rename, move, merge: what is filed under a topic goes with it. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, take } from '../../api/client';
import { useRights } from '../../api/me';
import type { Scope } from '../../parts/address';
import { Confirm } from '../../parts/dialog';
import { ARROW, above, type Topic } from '../../parts/topic-tree';
import { useWords } from '../../words';

type Act = 'rename' | 'move' | 'merge';
type Props = { scope: Scope; topic: Topic; topics: Topic[]; onMoved: (path: string) => void };

export function Acts({ scope, topic, topics, onMoved }: Props) {
  const words = useWords();
  const { writes } = useRights();
  const [asked, setAsked] = useState<Act | null>(null);
  return (
    <header className="between">
      <h2>
        <bdi>{topic.path.split(ARROW).join(' › ')}</bdi>
      </h2>
      {writes && (
        <div className="actions">
          {(['rename', 'move', 'merge'] as const).map((act) => (
            <button key={act} type="button" onClick={() => setAsked(act)}>
              {words.topics.acts[act]} …
            </button>
          ))}
        </div>
      )}
      {asked && (
        <ActDialog
          act={asked}
          scope={scope}
          topic={topic}
          topics={topics}
          onMoved={onMoved}
          onClose={() => setAsked(null)}
        />
      )}
    </header>
  );
}

function ActDialog({ act, scope, topic, topics, onMoved, onClose }: Props & { act: Act; onClose: () => void }) {
  const words = useWords();
  const queries = useQueryClient();
  const [said, setSaid] = useState(act === 'rename' ? topic.name : act === 'move' ? above(topic.path) : '');
  const others = topics.filter((each) => each.path !== topic.path && !each.path.startsWith(`${topic.path}${ARROW}`));
  const perform = async () => {
    const change = { rename: { name: said }, move: { parent: said }, merge: { into: said } }[act];
    const moved = await take(api.PATCH('/v1/topics', { body: { ...scope, path: topic.path, ...change } }));
    await queries.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'me' });
    onMoved(moved.path);
  };
  const same = act === 'rename' ? said.trim() === '' || said === topic.name : act === 'merge' && said === '';
  return (
    <Confirm
      title={words.topics.acts[act]}
      action={words.topics.acts[act]}
      disabled={same}
      onClose={onClose}
      onConfirm={perform}
    >
      <p>{words.topics.actSays[act]}</p>
      {act === 'rename' ? (
        <label className="field">
          <span>{words.topics.targets.rename}</span>
          <input value={said} dir="auto" onChange={(event) => setSaid(event.target.value)} />
        </label>
      ) : (
        <label className="field">
          <span>{words.topics.targets[act]}</span>
          <select value={said} onChange={(event) => setSaid(event.target.value)}>
            <option value="">{act === 'move' ? words.topics.top : '–'}</option>
            {others.map((each) => (
              <option key={each.path} value={each.path}>
                {each.path.split(ARROW).join(' › ')}
              </option>
            ))}
          </select>
        </label>
      )}
    </Confirm>
  );
}
