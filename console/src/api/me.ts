/** What the key that is signed in may do. */
import { createContext, useContext } from 'react';
import type { Me } from './client';

export const MeContext = createContext<Me | null>(null);

export type Rights = { me: Me; reads: boolean; writes: boolean; administers: boolean; bound: boolean };

/** Rights as the screens ask for them: what a key may not do is not offered. */
export function rightsOf(me: Me): Rights {
  const has = (right: string) => me.rights.includes(right);
  return { me, reads: has('read'), writes: has('write'), administers: has('admin'), bound: me.agent !== null };
}

export function useRights(): Rights {
  const me = useContext(MeContext);
  if (!me) throw new Error('Nobody is signed in.');
  return rightsOf(me);
}
