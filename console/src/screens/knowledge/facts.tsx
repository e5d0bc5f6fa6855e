/** An entity's facts on one line of time: full where believed, dashed where no longer believed. */
import type { Scope } from '../../parts/address';
import { day } from '../../parts/format';
import { type Extent, extent, placeMoment, placeSpan, ticks } from '../../parts/spans';
import { Answer, Empty } from '../../parts/states';
import { useWords } from '../../words';
import { type Relation, type Times, useTimeline } from './queries';

type Props = {
  scope: Scope;
  id: string;
  times: Times;
  chosen: string | null;
  onChoose: (fact: string) => void;
  onWalk: (entity: string) => void;
};

export function Facts({ scope, id, times, chosen, onChoose, onWalk }: Props) {
  const words = useWords();
  const pages = useTimeline(scope, id, times);
  return (
    <section className="card">
      <h2>{words.knowledge.facts}</h2>
      <Answer query={pages} lines={5}>
        {(data) => {
          const relations = data.pages.flatMap((page) => page.relations);
          if (relations.length === 0) return <Empty>{words.knowledge.noFacts}</Empty>;
          return (
            <Table id={id} relations={relations} at={times.at} chosen={chosen} onChoose={onChoose} onWalk={onWalk} />
          );
        }}
      </Answer>
      {pages.hasNextPage && (
        <button type="button" onClick={() => void pages.fetchNextPage()}>
          {words.states.more}
        </button>
      )}
    </section>
  );
}

type TableProps = Pick<Props, 'id' | 'chosen' | 'onChoose' | 'onWalk'> & {
  relations: Relation[];
  at: string | undefined;
};

function Table({ id, relations, at, chosen, onChoose, onWalk }: TableProps) {
  const words = useWords();
  const now = at ? Date.parse(at) : Date.now();
  const line = extent(relations.map(spanOf), now);
  return (
    <table className="times">
      <thead>
        <tr>
          <th scope="col">{words.knowledge.fact}</th>
          <th scope="col">
            <span className="unseen">{words.knowledge.inWorld}</span>
            <Axis line={line} />
          </th>
          <th scope="col">
            <span className="unseen">{words.knowledge.walk}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {relations.map((relation) => (
          <tr key={relation.memory_id} data-chosen={relation.fact_id === chosen}>
            <th scope="row" className={relation.superseded_at ? 'gone' : ''}>
              <button
                type="button"
                className="plain"
                aria-pressed={relation.fact_id === chosen}
                onClick={() => onChoose(relation.fact_id)}
              >
                <bdi>{relation.text}</bdi> {relation.version > 1 && <small>v{relation.version}</small>}
              </button>
            </th>
            <td>
              <Line relation={relation} line={line} now={now} />
            </td>
            <td>
              <Walk relation={relation} from={id} onWalk={onWalk} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const spanOf = (relation: Relation) => ({ from: relation.valid_at, to: relation.invalid_at });

function Axis({ line }: { line: Extent }) {
  return (
    <div className="axis" aria-hidden="true">
      {ticks(line).map(({ time, label }) => (
        <span key={time} style={{ insetInlineStart: `${placeMoment(time, line)}%` }}>
          {label}
        </span>
      ))}
    </div>
  );
}

function Line({ relation, line, now }: { relation: Relation; line: Extent; now: number }) {
  const words = useWords();
  const { x, width } = placeSpan(spanOf(relation), line);
  const gone = relation.superseded_at !== null;
  const says = `${day(relation.valid_at)} – ${day(relation.invalid_at)}, ${gone ? words.knowledge.noLonger : words.knowledge.believed}`;
  return (
    <svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={says}>
      <title>{says}</title>
      {ticks(line).map(({ time }) => (
        <line key={time} className="grid" x1={placeMoment(time, line)} x2={placeMoment(time, line)} y1={0} y2={6} />
      ))}
      <rect className={gone ? 'span gone' : 'span'} x={x} width={width} y={1.2} height={3.6} />
      <line className="now" x1={placeMoment(now, line)} x2={placeMoment(now, line)} y1={0} y2={6} />
    </svg>
  );
}

/** The way to the entity at the other end, for those who do not use the graph. */
function Walk({ relation, from, onWalk }: { relation: Relation; from: string; onWalk: (entity: string) => void }) {
  const other = relation.subject.id === from ? relation.object : relation.subject;
  if (other.id === from) return null;
  return (
    <button type="button" className="plain walk" onClick={() => onWalk(other.id)}>
      <bdi>{other.name}</bdi> →
    </button>
  );
}
