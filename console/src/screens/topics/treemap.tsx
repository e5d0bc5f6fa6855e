/** Every topic as an area of its memories; the tree beside it says the same to the keyboard and to screen readers. */
import { label } from '../../parts/graph-layout';
import { layAreas, type TopicNode } from '../../parts/topic-tree';
import { useWords } from '../../words';

type Props = { roots: TopicNode[]; chosen: string | null; onChoose: (path: string) => void };
const [WIDE, HIGH] = [1000, 380];

export function Treemap({ roots, chosen, onChoose }: Props) {
  const words = useWords();
  return (
    <svg className="treemap" viewBox={`0 0 ${WIDE} ${HIGH}`} role="img" aria-label={words.topics.areas}>
      {layAreas(roots, WIDE, HIGH).map(({ topic, x, y, width, height, leaf }) => (
        // biome-ignore lint/a11y/noStaticElementInteractions: the tree has the same as buttons
        <g key={topic.path} onClick={() => onChoose(topic.path)}>
          <rect
            className={`area depth-${Math.min(topic.depth, 3)} ${topic.path === chosen ? 'chosen' : ''}`}
            x={x}
            y={y}
            width={width}
            height={height}
            rx={5}
            fillOpacity={leaf ? 0.35 + 0.65 * (topic.activation ?? 0.5) : 1}
          >
            <title>{`${topic.path}: ${topic.memories + topic.below}`}</title>
          </rect>
          {width > 54 && height > 18 && (
            <text x={x + 8} y={leaf && height > 40 ? y + 22 : y + 16} pointerEvents="none">
              {fit(label(topic.name), width)}
            </text>
          )}
          {leaf && width > 54 && height > 44 && (
            <text className="count" x={x + 8} y={y + 40} pointerEvents="none">
              {topic.memories + topic.below}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
}

const fit = (name: string, width: number): string => {
  const letters = Math.floor((width - 14) / 8.5);
  return name.length > letters ? `${name.slice(0, Math.max(1, letters - 1))}…` : name;
};
