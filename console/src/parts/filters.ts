/** Every filter lives in the address, so that a view can be kept, shared and gone back to. */
import { useCallback } from 'react';
import { useSearchParams } from 'wouter';

export type Changes = Record<string, string | null | undefined>;

/** The filters of the address, and how to change some: an empty one is left out. */
export function useFilters(): [URLSearchParams, (changes: Changes) => void] {
  const [filters, setFilters] = useSearchParams();
  const change = useCallback(
    (changes: Changes) => setFilters((before) => withChanges(before, changes), { replace: true }),
    [setFilters],
  );
  return [filters, change];
}

export function withChanges(before: URLSearchParams, changes: Changes): URLSearchParams {
  const after = new URLSearchParams(before);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === '') after.delete(name);
    else after.set(name, value);
  }
  return after;
}
