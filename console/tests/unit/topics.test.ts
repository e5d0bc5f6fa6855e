import { expect, it } from 'vitest';
import { namesOf, stack } from '../../src/parts/stacks';
import { above, growTopics, layAreas } from '../../src/parts/topic-tree';

const topic = (path: string, memories: number, below = 0) => ({ path, name: path, memories, below });
const TOPICS = [topic('a', 1, 5), topic('a->b', 2, 1), topic('a->b->c', 1), topic('a->d', 2), topic('x->y', 3)];

it('hangs topics below each other, the largest first', () => {
  const roots = growTopics(TOPICS);
  expect(roots.map(({ path }) => path)).toEqual(['a', 'x->y']);
  expect(roots[0]?.children.map(({ path, depth }) => [path, depth])).toEqual([
    ['a->b', 1],
    ['a->d', 1],
  ]);
  expect(above('a->b->c')).toBe('a->b');
  expect(above('a')).toBe('');
});

it('lays areas inside each other and beside each other, never beyond the box', () => {
  const areas = layAreas(growTopics(TOPICS), 400, 300);
  expect(areas).toHaveLength(TOPICS.length);
  for (const { x, y, width, height } of areas) {
    expect(Math.min(x, y, width, height)).toBeGreaterThanOrEqual(0);
    expect(x + width).toBeLessThanOrEqual(400);
    expect(y + height).toBeLessThanOrEqual(300);
  }
  const size = (path: string) => {
    const area = areas.find((each) => each.topic.path === path);
    return (area?.width ?? 0) * (area?.height ?? 0);
  };
  expect(size('a')).toBeGreaterThan(size('x->y'));
  expect(size('a')).toBeGreaterThan(size('a->b'));
});

it('has nothing to lay where there is nothing', () => {
  expect(layAreas([], 400, 300)).toEqual([]);
});

it('stacks amounts in one order, the largest first, with every day', () => {
  const amounts = [
    { day: '1', name: 'small', value: 1 },
    { day: '1', name: 'large', value: 5 },
    { day: '2', name: 'large', value: 3 },
    { day: '1', name: 'large', value: 2 },
  ];
  expect(namesOf(amounts)).toEqual(['large', 'small']);
  expect(stack(amounts, ['0', '1'])).toEqual([
    { day: '0', total: 0, parts: [] },
    {
      day: '1',
      total: 8,
      parts: [
        { name: 'large', from: 0, value: 7 },
        { name: 'small', from: 7, value: 1 },
      ],
    },
  ]);
});
