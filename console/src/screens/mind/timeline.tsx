/** The list: however long it is, only what is seen is in the page. */
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, useEffect, useRef } from 'react';
import { api, type Memory, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { moment } from '../../parts/format';
import { Content, Importance, Kind, StateBadge } from '../../parts/memory';
import { Answer, Empty } from '../../parts/states';
import { useWords } from '../../words';
import { toQuery } from './query';

type Props = {
  scope: Scope;
  filters: URLSearchParams;
  chosen: string | null;
  onChoose: (id: string | null) => void;
};

export function Timeline({ scope, filters, chosen, onChoose }: Props) {
  const words = useWords();
  const query = toQuery(scope, filters);
  const pages = useInfiniteQuery({
    queryKey: ['memories', query],
    initialPageParam: '',
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      take(
        api.GET('/v1/memories', { params: { query: { ...query, ...(pageParam && { cursor: pageParam }) } }, signal }),
      ),
    getNextPageParam: (last) => last.next_cursor ?? undefined,
  });
  const filtered = Object.keys(query).length > 4;
  return (
    <Answer query={pages} lines={8}>
      {(data) => {
        const rows = data.pages.flatMap((page) => page.memories);
        if (rows.length === 0)
          return filtered ? (
            <Empty>{words.mind.noneAdmitted}</Empty>
          ) : (
            <Empty call={`recollect remember --agent ${scope.agent}${scope.user && ` --user ${scope.user}`} "…"`}>
              {words.mind.empty}
            </Empty>
          );
        return (
          <Rows
            rows={rows}
            chosen={chosen}
            onChoose={onChoose}
            more={pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : null}
          />
        );
      }}
    </Answer>
  );
}

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 };

type RowsProps = {
  rows: Memory[];
  chosen: string | null;
  onChoose: (id: string | null) => void;
  more: (() => void) | null;
};

function Rows({ rows, chosen, onChoose, more }: RowsProps) {
  const words = useWords();
  const box = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => 58,
    overscan: 8,
  });
  const items = list.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last > rows.length - 20) more?.();
  }, [last, rows.length, more]);
  const place = rows.findIndex((row) => row.id === chosen);
  const move = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onChoose(null);
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(rows.length - 1, place < 0 ? 0 : place + step));
    onChoose(rows[next]?.id ?? null);
    list.scrollToIndex(next);
  };
  return (
    <div
      ref={box}
      className="timeline card"
      role="listbox"
      tabIndex={0}
      aria-label={words.mind.title}
      aria-activedescendant={place < 0 ? undefined : `memory-${place}`}
      onKeyDown={move}
    >
      <div role="presentation" style={{ height: list.getTotalSize() }}>
        {items.map((item) => {
          const memory = rows[item.index];
          return memory ? (
            <Row
              key={memory.id}
              memory={memory}
              chosen={memory.id === chosen}
              place={item.index}
              size={more === null ? rows.length : -1}
              start={item.start}
              measure={list.measureElement}
              onChoose={() => onChoose(memory.id)}
            />
          ) : null;
        })}
      </div>
    </div>
  );
}

type RowProps = {
  memory: Memory;
  chosen: boolean;
  place: number;
  size: number;
  start: number;
  measure: (node: Element | null) => void;
  onChoose: () => void;
};

function Row({ memory, chosen, place, size, start, measure, onChoose }: RowProps) {
  return (
    <div
      id={`memory-${place}`}
      role="option"
      tabIndex={-1}
      aria-selected={chosen}
      aria-posinset={place + 1}
      aria-setsize={size}
      className="row"
      ref={measure}
      data-index={place}
      style={{ transform: `translateY(${start}px)` }}
      onClick={onChoose}
      onKeyDown={() => undefined}
    >
      <time dateTime={memory.occurred_at}>{moment(memory.occurred_at)}</time>
      <Kind kind={memory.kind} />
      <Importance value={memory.importance} />
      <span className="lines">
        <Content memory={memory} most={400} />
      </span>
      <StateBadge state={memory.state} />
    </div>
  );
}
