/** Where a screen stands: names in a path, whatever they are made of. Pure. */
export type Scope = { agent: string; user: string };
export const SCREENS = ['try', 'mind', 'ask', 'conversations', 'knowledge', 'topics', 'stream'] as const;
export type Screen = (typeof SCREENS)[number];
/** What is of the whole tenant, not of one scope. */
export const WHOLE = ['home', 'jobs', 'keys'] as const;
export type Whole = (typeof WHOLE)[number];
export type Place = { at: Whole | 'nowhere' } | { at: Screen; scope: Scope };

/** A name as one step of a path: an empty one is `-`, and no step is `.` or `..`, which browsers take for folders. */
export const encodeName = (name: string): string => {
  if (name === '') return '-';
  return /^[-.]/.test(name) ? `-${encodeURIComponent(name)}` : encodeURIComponent(name);
};

export function decodeName(step: string): string {
  const bare = step === '-' ? '' : step.startsWith('-') ? step.slice(1) : step;
  try {
    return decodeURIComponent(bare);
  } catch {
    return bare;
  }
}

export const scopePath = (scope: Scope, screen: Screen): string =>
  `/a/${encodeName(scope.agent)}/u/${encodeName(scope.user)}/${screen}`;

/** Read the place out of a path below the console's own. */
export function readPlace(path: string): Place {
  const steps = path.split('/').filter((step) => step !== '');
  if (steps.length === 0) return { at: 'home' };
  const whole = WHOLE.find((name) => name === steps[0]);
  if (whole && steps.length === 1) return { at: whole };
  const [a, agent, u, user, screen] = steps;
  const known = SCREENS.find((name) => name === screen);
  if (a !== 'a' || u !== 'u' || agent === undefined || user === undefined || !known || steps.length > 5)
    return { at: 'nowhere' };
  return { at: known, scope: { agent: decodeName(agent), user: decodeName(user) } };
}
