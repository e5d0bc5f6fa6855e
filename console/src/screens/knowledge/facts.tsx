/** An entity's facts on one line of time: full where believed, dashed where no longer believed. */
import type { Scope } from '../../parts/address';
import { day } from '../../parts/format';
import { type Extent, extent, placeMoment, placeSpan, ticks } from '../../parts/spans';
import { Answer, Empty } from '../../parts/states';
import { useWords } from '../../words';
import { type Fact, type Times, useTimeline } from './queries';

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
          const facts = data.pages.flatMap((page) => page.facts);
          if (facts.length === 0) return <Empty>{words.knowledge.noFacts}</Empty>;
          return <Table id={id} facts={facts} at={times.at} chosen={chosen} onChoose={onChoose} onWalk={onWalk} />;
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
  facts: Fact[];
  at: string | undefined;
};

function Table({ id, facts, at, chosen, onChoose, onWalk }: TableProps) {
  const words = useWords();
  const now = at ? Date.parse(at) : Date.now();
  const line = extent(facts.map(spanOf), now);
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
        {facts.map((fact) => (
          <tr key={fact.memory_id} data-chosen={fact.id === chosen}>
            <th scope="row" className={fact.superseded_at ? 'gone' : ''}>
              <button
                type="button"
                className="plain"
                aria-pressed={fact.id === chosen}
                onClick={() => onChoose(fact.id)}
              >
                <bdi>{fact.text}</bdi> {fact.version > 1 && <small>v{fact.version}</small>}
              </button>
            </th>
            <td>
              <Line fact={fact} line={line} now={now} />
            </td>
            <td>
              <Walk fact={fact} from={id} onWalk={onWalk} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const spanOf = ({ span }: Fact) => ({ from: span.valid_at, to: span.invalid_at });

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

function Line({ fact, line, now }: { fact: Fact; line: Extent; now: number }) {
  const words = useWords();
  const { x, width } = placeSpan(spanOf(fact), line);
  const gone = fact.superseded_at !== null;
  const says = `${day(fact.span.valid_at)} – ${day(fact.span.invalid_at)}, ${gone ? words.knowledge.noLonger : words.knowledge.believed}`;
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
function Walk({ fact, from, onWalk }: { fact: Fact; from: string; onWalk: (entity: string) => void }) {
  const [other, name] = fact.subject === from ? [fact.object, fact.object_name] : [fact.subject, fact.subject_name];
  if (other === from) return null;
  return (
    <button type="button" className="plain walk" onClick={() => onWalk(other)}>
      <bdi>{name}</bdi> →
    </button>
  );
}
