/** How many memories came on each day; to drag over it chooses a period. */
import { useState } from 'react';
import { useDays } from '../../api/days';
import type { Scope } from '../../parts/address';
import { type Column, period } from '../../parts/days';
import type { Changes } from '../../parts/filters';
import { useWords } from '../../words';
import { KINDS } from './query';

type Props = { scope: Scope; filters: URLSearchParams; change: (changes: Changes) => void };
const DAYS = 60;

export function Days({ scope, filters, change }: Props) {
  const words = useWords();
  const columns = useDays(scope, DAYS);
  const [from, setFrom] = useState<string | null>(null);
  if (!columns) return null;
  const total = columns.reduce((sum, column) => sum + column.total, 0);
  const choose = (day: string) => {
    if (from !== null) change({ ...period(from, day), memory: null });
    setFrom(null);
  };
  const since = filters.get('since');
  const until = filters.get('until');
  const within = (day: string) => since !== null && day >= since && (until === null || day < until);
  return (
    <figure className="activity">
      <svg
        className="days"
        viewBox={`0 0 ${DAYS} 20`}
        preserveAspectRatio="none"
        role="img"
        aria-label={words.home.inDays(total, DAYS)}
      >
        {columns.map((column, place) => (
          <DayColumn
            key={column.day}
            column={column}
            place={place}
            most={Math.max(1, ...columns.map((each) => each.total))}
            chosen={within(column.day)}
            onDown={() => setFrom(column.day)}
            onUp={() => choose(column.day)}
          />
        ))}
      </svg>
      <figcaption className="soft small">{words.mind.drag(DAYS)}</figcaption>
    </figure>
  );
}

type ColumnProps = {
  column: Column;
  place: number;
  most: number;
  chosen: boolean;
  onDown: () => void;
  onUp: () => void;
};

function DayColumn({ column, place, most, chosen, onDown, onUp }: ColumnProps) {
  let top = 20;
  return (
    <g onPointerDown={onDown} onPointerUp={onUp}>
      <rect className={chosen ? 'day chosen' : 'day'} x={place} width={1} y={0} height={20}>
        <title>{`${column.day}: ${column.total}`}</title>
      </rect>
      {KINDS.map((kind) => {
        const height = ((column.kinds[kind] ?? 0) / most) * 19;
        top -= height;
        return height > 0 ? (
          <rect
            key={kind}
            className={kind}
            x={place + 0.14}
            width={0.72}
            y={top}
            height={height}
            pointerEvents="none"
          />
        ) : null;
      })}
    </g>
  );
}
