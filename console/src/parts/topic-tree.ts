/** Topics as a tree, and as areas. Pure. */
import { hierarchy, treemap } from 'd3-hierarchy';

export type Topic = { path: string; name: string; memories: number; below: number; activation?: number | null };
export type TopicNode = Topic & { depth: number; children: TopicNode[] };
export type Area = { topic: TopicNode; x: number; y: number; width: number; height: number; leaf: boolean };
export const ARROW = '->';

/** The path of the topic above; empty for one of the first. */
export const above = (path: string): string => path.split(ARROW).slice(0, -1).join(ARROW);

/** Hang every topic below the one above it; where that is not in the list, it stands at the top. */
export function growTopics(topics: Topic[]): TopicNode[] {
  const nodes = new Map(topics.map((topic) => [topic.path, { ...topic, depth: 0, children: [] as TopicNode[] }]));
  const roots: TopicNode[] = [];
  for (const node of nodes.values()) {
    const parent = nodes.get(above(node.path));
    (parent && parent !== node ? parent.children : roots).push(node);
  }
  const settle = (all: TopicNode[], depth: number) => {
    all.sort((a, b) => b.memories + b.below - (a.memories + a.below) || (a.path < b.path ? -1 : 1));
    for (const node of all) {
      node.depth = depth;
      settle(node.children, depth + 1);
    }
  };
  settle(roots, 0);
  return roots;
}

/** Lay topics as areas of their memories; what a topic has of its own is an area beside those below it. */
export function layAreas(roots: TopicNode[], width: number, height: number, deepest = 3): Area[] {
  type Item = { topic: TopicNode | null; children: Item[]; own: number };
  const item = (topic: TopicNode): Item => {
    const open = topic.depth < deepest - 1 && topic.children.length > 0;
    const whole = topic.memories + topic.below;
    return open
      ? { topic, own: topic.memories, children: topic.children.map(item) }
      : { topic, own: Math.max(whole, 1), children: [] };
  };
  const root = hierarchy<Item>({ topic: null, own: 0, children: roots.map(item) }, (each) => each.children)
    .sum((each) => each.own)
    .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const laid = treemap<Item>()
    .size([width, height])
    .paddingOuter(3)
    .paddingTop((node) => (node.depth === 0 ? 0 : 22))
    .paddingInner(3)
    .round(true)(root);
  return laid.descendants().flatMap((node) =>
    node.data.topic
      ? [
          {
            topic: node.data.topic,
            x: node.x0,
            y: node.y0,
            width: node.x1 - node.x0,
            height: node.y1 - node.y0,
            leaf: !node.children,
          },
        ]
      : [],
  );
}
