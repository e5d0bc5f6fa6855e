/** One bar for one score: what speaks for the memory goes right of the axis, what speaks against it left. */
import { useWords } from '../words';
import { FAMILY_NAMES, type Part, parts, type Scored, segments } from './shares';

const CLASS = { meaning: 'meaning', words: 'words', who: 'who-family', time: 'time-family', form: 'form' } as const;
const hue = (part: Part): string => (part.share < 0 ? 'against' : CLASS[part.family]);
const signed = (share: number): string => `${share < 0 ? '−' : '+'}${Math.abs(share).toFixed(3)}`;

export function WhyBar({ hit, low, high }: { hit: Scored; low: number; high: number }) {
  const all = parts(hit);
  const wide = high - low;
  const x = (value: number) => ((value - low) / wide) * 100;
  return (
    <svg
      className="why"
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={all.map((part) => `${part.name} ${signed(part.share)}`).join(', ')}
    >
      {segments(all).map(({ part, from, width, shade }) => (
        <rect
          key={part.name}
          className={shade % 2 ? `${hue(part)} odd` : hue(part)}
          x={x(from)}
          width={Math.max(0, (width / wide) * 100 - 0.12)}
          y={0}
          height={6}
        >
          <title>{`${part.name} ${signed(part.share)}`}</title>
        </rect>
      ))}
      <line x1={x(0)} x2={x(0)} y1={0} y2={6} />
    </svg>
  );
}

/** Every part with its share, and beside a channel's share the score in its own unit. */
export function WhyList({ hit }: { hit: Scored }) {
  return (
    <ul className="legend">
      {parts(hit).map((part) => (
        <li key={part.name}>
          <i className={hue(part)} aria-hidden="true" />
          {part.name} <b>{signed(part.share)}</b>
          {part.score !== null && <small> ({part.score.toFixed(2)})</small>}
        </li>
      ))}
    </ul>
  );
}

/** What the colours mean. */
export function FamilyLegend() {
  const words = useWords();
  return (
    <ul className="legend">
      {FAMILY_NAMES.map((family) => (
        <li key={family}>
          <i className={CLASS[family]} aria-hidden="true" />
          {words.families[family]}
        </li>
      ))}
      <li>
        <i className="against" aria-hidden="true" />
        {words.families.against}
      </li>
    </ul>
  );
}
