/** How many memories came on each of the last days. */
import { useQuery } from '@tanstack/react-query';
import type { Scope } from '../parts/address';
import { type Column, fillDays } from '../parts/days';
import { api, take } from './client';

/** How many memories came on each of the last days, as days begin here; nothing until it is known. */
export function useDays({ agent, user }: Scope, days: number): Column[] | undefined {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const overview = useQuery({
    queryKey: ['overview', agent, user, days, zone],
    queryFn: ({ signal }) => take(api.GET('/v1/overview', { params: { query: { agent, user, days, zone } }, signal })),
  });
  const today = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
  return overview.data && fillDays(overview.data.activity, today, days);
}
