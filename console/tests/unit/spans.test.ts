import { expect, it } from 'vitest';
import { extent, placeMoment, placeSpan, ticks } from '../../src/parts/spans';

const NOW = Date.parse('2024-01-01T00:00:00Z');

it('lets open ends run to the edges', () => {
  const line = extent([{ from: '2020-01-01T00:00:00Z', to: null }], NOW);
  expect(placeSpan({ from: null, to: null }, line)).toEqual({ x: 0, width: 100 });
  expect(placeSpan({ from: '2020-01-01T00:00:00Z', to: '2024-01-01T00:00:00Z' }, line).width).toBeGreaterThan(90);
});

it('keeps a moment visible, and everything on the line', () => {
  const line = extent([{ from: '2000-01-01T00:00:00Z', to: null }], NOW);
  expect(placeSpan({ from: '2010-01-01T00:00:00Z', to: '2010-01-01T00:00:01Z' }, line).width).toBe(0.6);
  const beyond = placeSpan({ from: '2090-01-01T00:00:00Z', to: null }, line);
  expect(beyond.x + beyond.width).toBeLessThanOrEqual(100);
});

it('has now on the line even if nothing is known', () => {
  expect(placeMoment(NOW, extent([], NOW))).toBeCloseTo(50);
});

it('writes few, round moments', () => {
  const years = ticks([Date.parse('1999-05-01Z'), NOW]);
  expect(years.length).toBeLessThanOrEqual(9);
  expect(years.every(({ label }) => /^\d{4}$/.test(label))).toBe(true);
  expect(ticks([Date.parse('2023-08-15Z'), NOW])[0]?.label).toBe('2023-09');
  expect(ticks([Date.parse('2023-12-28Z'), NOW]).map(({ label }) => label)).toContain('12-30');
});
