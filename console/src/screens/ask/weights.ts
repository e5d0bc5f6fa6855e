/** Weights in the address, and what is drawn of them. Pure. */
import { inOrder, parts, type Scored } from '../../parts/shares';

export type Weights = Record<string, number>;

/** Read `vector:0.2,speaker:0`; what is not a number is passed over. */
export function readWeights(text: string | null): Weights {
  const found: Weights = {};
  for (const pair of (text ?? '').split(',')) {
    const [name = '', value = ''] = pair.split(':');
    if (/^[a-z_]{1,40}$/.test(name) && value !== '' && Number.isFinite(Number(value))) found[name] = Number(value);
  }
  return found;
}

export const writeWeights = (weights: Weights): string =>
  Object.entries(weights)
    .map(([name, value]) => `${name}:${value}`)
    .sort()
    .join(',');

/** Those weights that made a difference, and the others, each in the order of the bars. */
export function split(usual: Weights, all: Scored[], changed: Weights): { used: string[]; unused: string[] } {
  const names = inOrder(Object.keys(usual));
  const counted = new Set([...all.flatMap((each) => parts(each).map((part) => part.name)), ...Object.keys(changed)]);
  return { used: names.filter((name) => counted.has(name)), unused: names.filter((name) => !counted.has(name)) };
}

/** How far a slider goes: what takes away stays below 0. */
export const range = (usual: number): { min: number; max: number } =>
  usual < 0 ? { min: Math.min(-6, usual), max: 0 } : { min: 0, max: Math.max(6, usual) };
