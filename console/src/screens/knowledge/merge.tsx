/** Two entities that are one: the chosen one stays, and takes the other's facts and names. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { Confirm } from '../../parts/dialog';
import { Answer } from '../../parts/states';
import { useWords } from '../../words';
import { EntityName } from './entities';
import { type Entity, useDuplicates } from './queries';

type Props = { scope: Scope; kept: Entity; onClose: () => void; onDone: () => void };

export function MergeDialog({ scope, kept, onClose, onDone }: Props) {
  const words = useWords();
  const [search, setSearch] = useState('');
  const [chosen, setChosen] = useState<Entity | null>(null);
  const proposals = useDuplicates(scope, true);
  const found = useQuery({
    queryKey: ['merge-search', scope, search],
    enabled: search !== '',
    queryFn: async ({ signal }) => {
      const query = { ...scope, search, limit: 20 };
      return (await take(api.GET('/v1/entities', { params: { query }, signal }))).entities;
    },
  });
  const merge = async () => {
    const params = { path: { entity_id: kept.id } };
    await take(api.POST('/v1/entities/{entity_id}/merge', { params, body: { ...scope, absorbed: chosen?.id ?? '' } }));
    onDone();
  };
  const likely = (proposals.data ?? []).flatMap(({ kept: one, absorbed: other }) =>
    one.id === kept.id ? [other] : other.id === kept.id ? [one] : [],
  );
  const offered = search === '' ? likely : (found.data ?? []).filter((entity) => entity.id !== kept.id);
  return (
    <Confirm
      title={words.knowledge.mergeTitle(kept.name)}
      action={words.knowledge.mergeNow}
      disabled={chosen === null}
      onClose={onClose}
      onConfirm={merge}
    >
      <p>{words.knowledge.mergeSays}</p>
      <label className="field">
        <span>{words.knowledge.mergeFind}</span>
        <input type="search" value={search} onChange={(event) => setSearch(event.target.value)} />
      </label>
      {search === '' && <h3>{words.knowledge.mergeLikely}</h3>}
      <Answer<unknown> query={search === '' ? proposals : found} lines={2}>
        {() =>
          offered.length === 0 ? (
            <p className="soft">{words.knowledge.noneHere}</p>
          ) : (
            <Choices entities={offered} chosen={chosen} onChoose={setChosen} />
          )
        }
      </Answer>
    </Confirm>
  );
}

type ChoicesProps = { entities: Entity[]; chosen: Entity | null; onChoose: (entity: Entity) => void };

function Choices({ entities, chosen, onChoose }: ChoicesProps) {
  return (
    <ul className="choices">
      {entities.map((entity) => (
        <li key={entity.id}>
          <label>
            <input type="radio" name="absorbed" checked={chosen?.id === entity.id} onChange={() => onChoose(entity)} />
            <EntityName entity={entity} />
          </label>
        </li>
      ))}
    </ul>
  );
}
