/** A neighborhood as a graph with places: the same each time. Pure. */
import type { Schemas } from '../api/client';

export type Around = Schemas['Neighbors'];
export type Node = { id: string; name: string; type: string; depth: number; x: number; y: number };
export type Edge = { id: string; from: string; to: string; name: string };
const GOLDEN = 2.399963;
const BETWEEN = ' · ';
const REST = ' · …';
const MOST_JOINED = 60;

/** Lay the entity in the middle, and the others around it by depth, each at a turn of the golden angle. */
export function layGraph(around: Around): { nodes: Node[]; edges: Edge[] } {
  const nodes = new Map<string, Node>();
  const add = (entity: Around['entity'], depth: number) => {
    if (nodes.has(entity.id)) return;
    const turn = nodes.size * GOLDEN;
    const radius = depth * 4 + Math.sqrt(nodes.size);
    const place = { x: radius * Math.cos(turn), y: radius * Math.sin(turn) };
    nodes.set(entity.id, { id: entity.id, name: entity.name, type: entity.type, depth, ...place });
  };
  add(around.entity, 0);
  for (const neighbor of around.neighbors) add(neighbor.entity, neighbor.depth);
  const edges: Edge[] = [];
  const between = new Map<string, Edge>();
  for (const { memory_id: id, subject, predicate, object } of around.relations) {
    if (!nodes.has(subject.id) || !nodes.has(object.id)) continue;
    const edge = { id, from: subject.id, to: object.id, name: label(predicate) };
    const pair = [edge.from, edge.to].sort().join();
    const first = between.get(pair);
    // Names that lie upon each other cannot be read: the first edge of a pair has them all, as far as there is room.
    if (first) {
      first.name = join(first.name, edge.name);
      edge.name = '';
    } else between.set(pair, edge);
    // One edge each way, for its arrow.
    if (!edges.some(({ from, to }) => from === edge.from && to === edge.to)) edges.push(edge);
  }
  return { nodes: [...nodes.values()], edges };
}

function join(names: string, name: string): string {
  if (names.endsWith(REST) || names.split(BETWEEN).includes(name)) return names;
  const joined = `${names}${BETWEEN}${name}`;
  return joined.length > MOST_JOINED ? `${names}${REST}` : joined;
}

/** A name of any length, as it is written into a picture. */
export function label(name: string): string {
  const plain = name.replace(/[\p{Cc}\p{Cf}]/gu, '');
  return plain.length > 40 ? `${plain.slice(0, 39)}…` : plain;
}
