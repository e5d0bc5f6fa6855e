/** What a memory was made from, and what was made from it: steps as a tree. Pure. */
export type Step<M extends { id: string }> = { memory: M; of: string; depth: number };
export type Branch<M> = { memory: M; below: Branch<M>[] };

/** Hang every step below the memory that it belongs to; one that was reached twice is shown once. */
export function growTrail<M extends { id: string }>(root: string, steps: Step<M>[]): Branch<M>[] {
  const seen = new Set([root]);
  const grow = (id: string): Branch<M>[] =>
    steps.flatMap((step) => {
      if (step.of !== id || seen.has(step.memory.id)) return [];
      seen.add(step.memory.id);
      return [{ memory: step.memory, below: grow(step.memory.id) }];
    });
  return grow(root);
}
