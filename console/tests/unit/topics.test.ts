import { expect, it } from 'vitest';
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
