/** All messages in the order of their numbers, each branch in its lane; those of the prompt are marked. */
import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef } from 'react';
import type { Scope } from '../../parts/address';
import { layBranches, type Rail, thread } from '../../parts/branches';
import { moment } from '../../parts/format';
import { Answer, Empty } from '../../parts/states';
import { useWords } from '../../words';
import { type Message, type Prompt, type Segment, useSegments } from './queries';

type Page = { messages: Message[]; next: number | null };
type Props = {
  scope: Scope;
  conversation: string;
  pages: UseInfiniteQueryResult<InfiniteData<Page>>;
  leaf: string | null;
  prompt: Prompt | undefined;
  onOpen: (id: string) => void;
};

export function Thread({ scope, conversation, pages, leaf, prompt, onOpen }: Props) {
  const words = useWords();
  const segments = useSegments(scope, conversation);
  return (
    <Answer query={pages} lines={8}>
      {(data) => {
        const messages = data.pages.flatMap((page) => page.messages);
        if (messages.length === 0) return <Empty>{words.conversations.noMessages}</Empty>;
        return (
          <Rows
            messages={messages}
            segments={segments.data ?? []}
            leaf={leaf}
            prompt={prompt}
            onOpen={onOpen}
            more={pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : null}
          />
        );
      }}
    </Answer>
  );
}

type RowsProps = Pick<Props, 'leaf' | 'prompt' | 'onOpen'> & {
  messages: Message[];
  segments: Segment[];
  more: (() => void) | null;
};

function Rows({ messages, segments, leaf, prompt, onOpen, more }: RowsProps) {
  const words = useWords();
  const rails = useMemo(() => layBranches(messages), [messages]);
  const shown = useMemo(() => thread(messages, leaf ?? messages.at(-1)?.id ?? null), [messages, leaf]);
  const inPrompt = new Set(prompt?.history.messages.map((message) => message.id));
  const starts = new Map(segments.map((segment) => [segment.first_number, segment]));
  const lanes = Math.min(MOST_LANES, rails.reduce((most, rail) => Math.max(most, rail.lane), 0) + 1);
  const box = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: messages.length,
    getScrollElement: () => box.current,
    estimateSize: () => 56,
    overscan: 10,
  });
  const items = list.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last > messages.length - 40) more?.();
  }, [last, messages.length, more]);
  return (
    <section
      ref={box}
      className="thread card"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
      tabIndex={0}
      aria-label={words.conversations.said}
    >
      <ol style={{ height: list.getTotalSize() }}>
        {items.map((item) => {
          const message = messages[item.index];
          const rail = rails[item.index];
          if (!message || !rail) return null;
          const segment = starts.get(message.number);
          const state = !shown.has(message.id) ? 'aside' : !prompt || inPrompt.has(message.id) ? 'in' : 'out';
          return (
            <li
              key={message.id}
              ref={list.measureElement}
              data-index={item.index}
              className={`said ${state}`}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {segment && <SegmentHead segment={segment} onOpen={onOpen} />}
              <SaidRow message={message} rail={rail} lanes={lanes} out={state === 'out'} onOpen={onOpen} />
            </li>
          );
        })}
      </ol>
    </section>
  );
}

type SaidProps = { message: Message; rail: Rail; lanes: number; out: boolean; onOpen: (id: string) => void };

function SaidRow({ message, rail, lanes, out, onOpen }: SaidProps) {
  const words = useWords();
  return (
    <div className="said-row">
      <Rails rail={rail} lanes={lanes} />
      <span className="soft number">{message.number}</span>
      <b className={`role ${message.role}`}>{words.conversations.roles[message.role] ?? message.role}</b>
      <button type="button" className="plain" onClick={() => onOpen(message.id)}>
        <bdi>{message.content.slice(0, 2000)}</bdi>
      </button>
      <small className="soft">
        {out && <span className="badge">{words.conversations.fellOutShort}</span>}{' '}
        <time dateTime={message.occurred_at}>{moment(message.occurred_at)}</time>
      </small>
    </div>
  );
}

function SegmentHead({ segment, onOpen }: { segment: Segment; onOpen: (id: string) => void }) {
  const words = useWords();
  if (!segment.label && !segment.summary_id) return null;
  return (
    <p className="segment">
      {segment.label && (
        <span>
          {words.conversations.topic} <bdi>{segment.label}</bdi>
        </span>
      )}
      {segment.summary_id && (
        <button type="button" className="plain" onClick={() => onOpen(segment.summary_id ?? '')}>
          {words.conversations.summary}
        </button>
      )}
    </p>
  );
}

const WIDE = 14;
const MOST_LANES = 8;

/** The lanes beside one message: lines that pass by, its own, and branches that begin below it. */
function Rails({ rail, lanes }: { rail: Rail; lanes: number }) {
  const x = (lane: number) => Math.min(lane, MOST_LANES - 1) * WIDE + WIDE / 2;
  const own = x(rail.lane);
  return (
    <span className="lanes" style={{ width: lanes * WIDE }} aria-hidden="true">
      {rail.passing.map((lane) => (
        <i key={lane} className="line" style={{ insetInlineStart: x(lane) }} />
      ))}
      {rail.follows && <i className="line up" style={{ insetInlineStart: own }} />}
      {rail.goesOn && <i className="line down" style={{ insetInlineStart: own }} />}
      {rail.opens.map((lane) => (
        <i key={lane} className="elbow" style={{ insetInlineStart: own, width: Math.max(2, x(lane) - own + 1) }} />
      ))}
      <i className="knot" style={{ insetInlineStart: own }} />
    </span>
  );
}
