/** Every hit as a point: across its recency, up its similarity, as large as it is important. */
import type { Schemas } from '../../api/client';
import { useWords } from '../../words';

type Props = { hits: Schemas['Hit'][]; chosen: string | null; onOpen: (id: string) => void };
const [WIDE, HIGH, EDGE] = [640, 360, 34];

export function Scatter({ hits, chosen, onOpen }: Props) {
  const words = useWords();
  const x = (value: number) => EDGE + value * (WIDE - EDGE - 16);
  const y = (value: number) => HIGH - EDGE - value * (HIGH - EDGE - 16);
  return (
    <svg
      className="scatter card"
      viewBox={`0 0 ${WIDE} ${HIGH}`}
      role="img"
      aria-label={words.stream.picture(hits.length)}
    >
      {[0, 0.25, 0.5, 0.75, 1].map((step) => (
        <g key={step}>
          <line className="grid" x1={x(step)} x2={x(step)} y1={y(0)} y2={y(1)} />
          <line className="grid" x1={x(0)} x2={x(1)} y1={y(step)} y2={y(step)} />
        </g>
      ))}
      <text x={x(0.5)} y={HIGH - 8} textAnchor="middle">
        {words.stream.factors.recency} →
      </text>
      <text x={14} y={y(0.5)} textAnchor="middle" transform={`rotate(-90 14 ${y(0.5)})`}>
        {words.stream.factors.similarity} →
      </text>
      {hits.map(({ memory, channels }) => {
        const factors = channels.stream?.factors;
        return factors ? (
          // biome-ignore lint/a11y/noStaticElementInteractions: the table below has the first of them as buttons
          <circle
            key={memory.id}
            className={`point ${memory.kind} ${memory.id === chosen ? 'chosen' : ''}`}
            cx={x(factors.recency)}
            cy={y(factors.similarity)}
            r={3 + factors.importance * 8}
            onClick={() => onOpen(memory.id)}
          >
            <title>{memory.content.slice(0, 200)}</title>
          </circle>
        ) : null;
      })}
    </svg>
  );
}
