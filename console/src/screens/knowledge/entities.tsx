import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useRights } from '../../api/me';
import type { Scope } from '../../parts/address';
import type { Changes } from '../../parts/filters';
import { Answer, Empty } from '../../parts/states';
import { useWords } from '../../words';
import { MergeDialog } from './merge';
import { type Entity, type Times, useEntity } from './queries';

type Page = { entities: Entity[]; next_cursor: string | null };
type ListProps = {
  pages: UseInfiniteQueryResult<InfiniteData<Page>>;
  search: string;
  chosen: string | null;
  change: (changes: Changes) => void;
};

export function EntityList({ pages, search, chosen, change }: ListProps) {
  const words = useWords();
  return (
    <nav className="side-list" aria-label={words.knowledge.entities}>
      <label className="field">
        <span>{words.knowledge.find}</span>
        <input
          type="search"
          value={search}
          onChange={(event) => change({ search: event.target.value, entity: null })}
        />
      </label>
      <Answer query={pages} lines={6}>
        {(data) => {
          const all = data.pages.flatMap((page) => page.entities);
          if (all.length === 0) return <Empty>{words.knowledge.noneHere}</Empty>;
          return (
            <ul>
              {all.map((entity) => (
                <li key={entity.id}>
                  <button
                    type="button"
                    className="plain"
                    aria-current={entity.id === chosen ? 'true' : undefined}
                    onClick={() => change({ entity: entity.id, fact: null, memory: null })}
                  >
                    <EntityName entity={entity} />
                    {entity.facts !== null && <small className="soft">{words.knowledge.factCount(entity.facts)}</small>}
                  </button>
                </li>
              ))}
            </ul>
          );
        }}
      </Answer>
      {pages.hasNextPage && (
        <button type="button" onClick={() => void pages.fetchNextPage()}>
          {words.states.more}
        </button>
      )}
    </nav>
  );
}

export function EntityName({ entity }: { entity: Entity }) {
  const words = useWords();
  return (
    <span className="entity">
      <i className={`dot ${entity.type}`} aria-hidden="true" />
      <bdi>{entity.name}</bdi> <small className="soft">{words.knowledge.types[entity.type] ?? entity.type}</small>
    </span>
  );
}

type HeadProps = { scope: Scope; id: string; times: Times; onMerged: () => void; children: ReactNode };

export function EntityHead({ scope, id, times, onMerged, children }: HeadProps) {
  const words = useWords();
  const { writes } = useRights();
  const entity = useEntity(scope, id, times);
  const [merging, setMerging] = useState(false);
  return (
    <Answer query={entity} lines={1}>
      {(data) =>
        data && (
          <header className="between entity-head">
            <div>
              <h2>
                <EntityName entity={data} />
              </h2>
              {data.aliases.length > 0 && (
                <p className="soft small">
                  {words.knowledge.aliases} <bdi>{data.aliases.join(', ')}</bdi>
                </p>
              )}
              {data.description && (
                <p className="soft small">
                  <bdi>{data.description}</bdi>
                </p>
              )}
            </div>
            <div className="actions">
              {children}
              {writes && (
                <button type="button" onClick={() => setMerging(true)}>
                  {words.knowledge.merge} …
                </button>
              )}
            </div>
            {merging && <MergeDialog scope={scope} kept={data} onClose={() => setMerging(false)} onDone={onMerged} />}
          </header>
        )
      }
    </Answer>
  );
}
