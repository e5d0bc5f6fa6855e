import { expect, it } from 'vitest';
import { decodeName, encodeName, readPlace, scopePath } from '../../src/parts/address';

const NAMES = ['', '-', '--', 'ada', 'a/b', '..', '.', '-.', 'a b', '50%', '李', '<b>', '?x=1#y', '\u202etxt'];

it('brings every name back from a path', () => {
  for (const name of NAMES) expect(decodeName(encodeName(name))).toBe(name);
});

it('never writes a step that a browser resolves', () => {
  for (const name of NAMES) {
    const path = scopePath({ agent: name, user: name }, 'ask');
    expect(new URL(path, 'http://host/').pathname).toBe(path);
    expect(readPlace(path)).toEqual({ at: 'ask', scope: { agent: name, user: name } });
  }
});

it('knows home, and what is nowhere', () => {
  expect(readPlace('/')).toEqual({ at: 'home' });
  expect(readPlace('/jobs')).toEqual({ at: 'jobs' });
  for (const path of ['/x', '/jobs/more', '/a/ada', '/a/ada/u/li/none', '/a/ada/u/li/ask/more'])
    expect(readPlace(path)).toEqual({ at: 'nowhere' });
});

it('reads a broken escape as it stands', () => {
  expect(decodeName('%E0%A4')).toBe('%E0%A4');
});
