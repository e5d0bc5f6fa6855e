import { expect, it } from 'vitest';
import { type Around, label, layGraph } from '../../src/parts/graph-layout';

const entity = (id: string) => ({ id, name: id, type: 'person', aliases: [], description: '', merged_into: null });
const relation = (id: string, from: string, to: string, predicate: string) => ({
  memory_id: id,
  subject: entity(from),
  object: entity(to),
  predicate,
});
const around = {
  entity: entity('a'),
  neighbors: [{ entity: entity('b'), depth: 1, led_by: '1' }],
  relations: [
    relation('1', 'a', 'b', 'knows'),
    relation('2', 'b', 'a', 'likes'),
    relation('3', 'a', 'b', 'knows'),
    relation('4', 'a', 'c', 'sees'),
  ],
  whole: true,
} as unknown as Around;

it('lays one entity in the middle, the same each time', () => {
  expect(layGraph(around)).toEqual(layGraph(around));
  expect(layGraph(around).nodes.map(({ id, depth }) => [id, depth])).toEqual([
    ['a', 0],
    ['b', 1],
  ]);
  expect(layGraph(around).nodes[0]).toMatchObject({ x: 0, y: 0 });
});

it('draws one edge each way between two entities, named once, and leaves out what leads beyond', () => {
  expect(layGraph(around).edges.map(({ id, from, name }) => [id, from, name])).toEqual([
    ['1', 'a', 'knows · likes'],
    ['2', 'b', ''],
  ]);
});

it('ends the names of an edge where they would be too long', () => {
  const names = Array.from({ length: 20 }, (_, number) => relation(`${number}`, 'a', 'b', `works with ${number}`));
  const [edge] = layGraph({ ...around, relations: names } as unknown as Around).edges;
  expect(edge?.name).toMatch(/^works with 0 · works with 1 · .* · …$/);
  expect(edge?.name.length).toBeLessThanOrEqual(64);
});

it('writes names short and without marks that turn text round', () => {
  expect(label('\u202eevil')).toBe('evil');
  expect(label('A'.repeat(1000))).toHaveLength(40);
});
