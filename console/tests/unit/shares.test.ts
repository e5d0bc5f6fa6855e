import { describe, expect, it } from 'vitest';
import { bounds, familyOf, inOrder, parts, segments } from '../../src/parts/shares';

const hit = {
  channels: { text: { share: 0.1, score: 6.2 }, vector: { share: 0.3, score: 0.6 } },
  preferences: { assistant: -0.05, wish: 0, coverage: 0.2, brand_new: 0.01 },
};

describe('what made a score', () => {
  it('is in one order, and leaves out what adds nothing', () => {
    expect(parts(hit).map((part) => part.name)).toEqual(['vector', 'text', 'coverage', 'assistant', 'brand_new']);
    expect(inOrder(['long', 'date', 'vector'])).toEqual(['vector', 'date', 'long']);
  });

  it('adds up to the score', () => {
    const total = parts(hit).reduce((sum, part) => sum + part.share, 0);
    expect(total).toBeCloseTo(0.56);
  });

  it('goes left of the axis where it speaks against a memory', () => {
    const laid = segments(parts(hit));
    expect(laid.find((segment) => segment.part.name === 'assistant')).toMatchObject({ from: -0.05, width: 0.05 });
    const right = laid.filter((segment) => segment.from >= 0);
    for (const [index, segment] of right.entries())
      expect(segment.from).toBeCloseTo(right.slice(0, index).reduce((sum, each) => sum + each.width, 0));
  });

  it('has a family, also if nobody has heard of it', () => {
    expect(['vector', 'coverage', 'speaker', 'date', 'brand_new'].map(familyOf)).toEqual([
      'meaning',
      'words',
      'who',
      'time',
      'form',
    ]);
  });

  it('is drawn to one scale for all', () => {
    const { low, high } = bounds([hit, { channels: {}, preferences: { long: -0.4 } }]);
    expect(low).toBeCloseTo(-0.4);
    expect(high).toBeCloseTo(0.61);
    expect(bounds([])).toEqual({ low: 0, high: 0.01 });
  });
});
