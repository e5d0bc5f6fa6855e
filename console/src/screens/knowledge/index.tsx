/** Whom and what it knows, since when, and from where. */
import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import type { Scope } from '../../parts/address';
import { Detail } from '../../parts/detail';
import { useFilters } from '../../parts/filters';
import { toInput, toInstant } from '../../parts/format';
import { Head } from '../../parts/frame';
import { Answer, Empty, Loading } from '../../parts/states';
import { useWords } from '../../words';
import { EntityHead, EntityList } from './entities';
import { FactView } from './fact';
import { Facts } from './facts';
import { type Times, useEntities, useNeighbors } from './queries';

const GraphView = lazy(() => import('../../parts/graph-view'));

export default function Knowledge({ scope }: { scope: Scope }) {
  const words = useWords();
  const [filters, change] = useFilters();
  const search = filters.get('search') ?? '';
  const memory = filters.get('memory');
  const entities = useEntities(scope, search);
  const first = entities.data?.pages[0]?.entities[0]?.id ?? null;
  const chosen = filters.get('entity') ?? first;
  const as_of = toInstant(filters.get('as_of'));
  const at = toInstant(filters.get('at'));
  const times: Times = { ...(as_of && { as_of }), ...(at && { at }) };
  const open = (id: string | null) => change({ memory: id });
  return (
    <div className="knowledge">
      <Head title={words.knowledge.title} says={words.knowledge.says}>
        <div className="bar">
          {(['as_of', 'at'] as const).map((name) => (
            <label key={name} className="field">
              <span>{words.knowledge[name]}</span>
              <input
                type="datetime-local"
                value={toInput(filters.get(name))}
                onChange={(event) => change({ [name]: toInstant(event.target.value) })}
              />
            </label>
          ))}
        </div>
      </Head>
      <div className="with-list">
        <EntityList pages={entities} search={search} chosen={chosen} change={change} />
        {chosen === null ? (
          <Answer query={entities}>{() => <None scope={scope} search={search} />}</Answer>
        ) : (
          <Shown key={chosen} scope={scope} id={chosen} times={times} onOpen={open} />
        )}
      </div>
      {memory && (
        <div className="drawer">
          <Detail key={memory} scope={scope} id={memory} onOpen={open} onClose={() => open(null)} />
        </div>
      )}
    </div>
  );
}

function None({ scope, search }: { scope: Scope; search: string }) {
  const words = useWords();
  if (search) return <Empty>{words.knowledge.noSuchEntity}</Empty>;
  const fact = { ...scope, facts: [{ subject: 'Li', predicate: 'lives in', object: 'Bergen' }] };
  return <Empty call={`POST /v1/facts\n${JSON.stringify(fact)}`}>{words.knowledge.empty}</Empty>;
}

type ShownProps = { scope: Scope; id: string; times: Times; onOpen: (id: string) => void };

function Shown({ scope, id, times, onOpen }: ShownProps) {
  const words = useWords();
  const queries = useQueryClient();
  const [filters, change] = useFilters();
  const hops = Math.min(3, Math.max(1, Number(filters.get('hops')) || 1));
  const around = useNeighbors(scope, id, hops, times);
  const fact = filters.get('fact');
  const refresh = () => queries.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'me' });
  const walk = (entity: string) => change({ entity, fact: null, memory: null });
  return (
    <div className="known">
      <EntityHead scope={scope} id={id} times={times} onMerged={refresh}>
        <label className="hops">
          {words.knowledge.hops}
          <select value={hops} onChange={(event) => change({ hops: event.target.value })}>
            {[1, 2, 3].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </EntityHead>
      <Answer query={around} lines={6}>
        {(data) => (
          <>
            <Suspense fallback={<Loading />}>
              <GraphView around={data} onChoose={walk} />
            </Suspense>
            {!data.whole && <p className="soft small">{words.knowledge.notWhole}</p>}
          </>
        )}
      </Answer>
      <Facts
        scope={scope}
        id={id}
        times={times}
        chosen={fact}
        onChoose={(each) => change({ fact: each })}
        onWalk={walk}
      />
      {fact && (
        <FactView
          key={fact}
          scope={scope}
          id={fact}
          onOpen={onOpen}
          onDone={refresh}
          onClose={() => change({ fact: null })}
        />
      )}
    </div>
  );
}
