/** Weights that a slider moves at once, the ranking follows a moment later, and the address last. */
import { useEffect, useState } from 'react';
import { useFilters } from '../../parts/filters';
import { readWeights, type Weights, writeWeights } from './weights';

const RANK_MS = 60;
const ADDRESS_MS = 400;

export function useWeights() {
  const [filters, change] = useFilters();
  const [weights, setWeights] = useState<Weights>(() => readWeights(filters.get('weights')));
  const [later, setLater] = useState(weights);
  useEffect(() => {
    const rank = setTimeout(() => setLater(weights), RANK_MS);
    const address = setTimeout(() => change({ weights: writeWeights(weights) }), ADDRESS_MS);
    return () => {
      clearTimeout(rank);
      clearTimeout(address);
    };
  }, [weights, change]);
  const set = (name: string, value: number, usual: number) => {
    const { [name]: _old, ...others } = weights;
    setWeights(value === usual ? others : { ...others, [name]: value });
  };
  return { weights, later, change: set, reset: () => setWeights({}) };
}
