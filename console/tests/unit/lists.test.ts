import { expect, it } from 'vitest';
import { layBranches, thread } from '../../src/parts/branches';
import { layBudget } from '../../src/parts/budget';
import { fillDays, period } from '../../src/parts/days';
import { ago, signed, toInput, toInstant } from '../../src/parts/format';
import { growTrail } from '../../src/parts/trail';

const said = (id: string, parent: string | null, number = Number(id)) => ({ id, parent, number });

it('draws branches in lanes of their own', () => {
  const rails = layBranches([said('1', null), said('2', '1'), said('3', '2'), said('4', '2'), said('5', '4')]);
  expect(rails.map((rail) => rail.lane)).toEqual([0, 0, 0, 1, 1]);
  expect(rails[1]).toEqual({ lane: 0, follows: true, goesOn: true, opens: [1], passing: [] });
  expect(rails[2]).toEqual({ lane: 0, follows: true, goesOn: false, opens: [], passing: [1] });
  expect(rails[3]).toEqual({ lane: 1, follows: true, goesOn: true, opens: [], passing: [] });
});

it('gives a second root a lane, and survives a parent that is missing or comes later', () => {
  const rails = layBranches([said('1', null), said('2', null), said('3', 'gone'), said('4', '5'), said('5', '1')]);
  expect(rails.map((rail) => rail.lane)).toEqual([0, 1, 2, 3, 0]);
  expect(rails.map((rail) => rail.follows)).toEqual([false, false, false, false, true]);
});

it('follows a thread to its root, also round a circle', () => {
  const all = [said('1', '2'), said('2', '1'), said('3', '2')];
  expect([...thread(all, '3')]).toEqual(['3', '2', '1']);
  expect(thread(all, null).size).toBe(0);
});

it('lays a budget along one line', () => {
  const spent = { system: 10, summary: 0, memories: 30, history: 40, cue: 5, framing: 5, total: 90, budget: 100 };
  const laid = layBudget(spent);
  expect(laid.map(({ part }) => part)).toEqual(['system', 'memories', 'history', 'cue', 'framing', 'free']);
  expect(laid.reduce((sum, { width }) => sum + width, 0)).toBeCloseTo(100);
  expect(layBudget({ ...spent, budget: 50 }).reduce((sum, { width }) => sum + width, 0)).toBeCloseTo(100);
});

it('has a column for every day', () => {
  const columns = fillDays(
    [
      { day: '2026-03-01', kind: 'event', memories: 2 },
      { day: '2026-03-01', kind: 'fact', memories: 1 },
      { day: '2020-01-01', kind: 'fact', memories: 9 },
    ],
    '2026-03-02',
    4,
  );
  expect(columns.map(({ day, total }) => [day.slice(5), total])).toEqual([
    ['02-27', 0],
    ['02-28', 0],
    ['03-01', 3],
    ['03-02', 0],
  ]);
  expect(period('2026-03-02', '2026-02-27')).toEqual({ since: '2026-02-27', until: '2026-03-03' });
});

it('hangs evidence below what it is evidence of', () => {
  const step = (id: string, of: string) => ({ memory: { id }, of, depth: 1 });
  const grown = growTrail('a', [step('b', 'a'), step('c', 'b'), step('c', 'a'), step('a', 'c')]);
  expect(grown).toEqual([{ memory: { id: 'b' }, below: [{ memory: { id: 'c' }, below: [] }] }]);
});

it('writes times and numbers', () => {
  const now = Date.parse('2026-03-01T12:00:00Z');
  expect(ago('2026-03-01T11:58:00Z', now, 'en')).toContain('2 min');
  expect(ago('2026-02-28T12:00:00Z', now, 'en')).toBe('yesterday');
  expect(signed(-0.12)).toBe('−0.120');
  expect(toInstant('')).toBeUndefined();
  expect(toInstant('nonsense')).toBeUndefined();
  expect(toInstant(toInput('2026-03-01T12:00:00.000Z'))).toBe('2026-03-01T12:00:00.000Z');
});
