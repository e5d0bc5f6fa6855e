import { useState } from 'react';
import { Icon } from '../../parts/icons';
import type { TopicNode } from '../../parts/topic-tree';
import { useWords } from '../../words';

type Props = { roots: TopicNode[]; chosen: string | null; onChoose: (path: string) => void };

export function Tree({ roots, chosen, onChoose }: Props) {
  const words = useWords();
  return (
    <nav className="side-list topic-tree" aria-label={words.topics.title}>
      <Level nodes={roots} chosen={chosen} onChoose={onChoose} />
    </nav>
  );
}

function Level({
  nodes,
  chosen,
  onChoose,
}: {
  nodes: TopicNode[];
  chosen: string | null;
  onChoose: (path: string) => void;
}) {
  return (
    <ul>
      {nodes.map((node) => (
        <Branch key={node.path} node={node} chosen={chosen} onChoose={onChoose} />
      ))}
    </ul>
  );
}

function Branch({
  node,
  chosen,
  onChoose,
}: {
  node: TopicNode;
  chosen: string | null;
  onChoose: (path: string) => void;
}) {
  const words = useWords();
  const [open, setOpen] = useState(node.depth < 1 || (chosen?.startsWith(node.path) ?? false));
  return (
    <li>
      <div className="topic-row">
        {node.children.length > 0 ? (
          <button
            type="button"
            className="quiet fold"
            aria-expanded={open}
            aria-label={words.topics.unfold(node.name)}
            onClick={() => setOpen(!open)}
          >
            <Icon name="right" />
          </button>
        ) : (
          <span className="fold" />
        )}
        <button
          type="button"
          className="plain"
          aria-current={node.path === chosen ? 'true' : undefined}
          onClick={() => onChoose(node.path)}
        >
          <bdi>{node.name}</bdi>
          <small className="soft number">{node.memories + node.below}</small>
        </button>
      </div>
      {open && node.children.length > 0 && <Level nodes={node.children} chosen={chosen} onChoose={onChoose} />}
    </li>
  );
}
