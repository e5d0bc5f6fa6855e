/** The sample mind: filled on request, removed by one click. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useRights } from '../../api/me';
import type { Scope } from '../../parts/address';
import { SAMPLE } from '../../parts/sample';
import { Failure } from '../../parts/states';
import { useWords } from '../../words';
import { fillSample, removeSample, useSampleSize } from './queries';

export function Sample({ scope }: { scope: Scope }) {
  const words = useWords();
  const { writes } = useRights();
  const queries = useQueryClient();
  const size = useSampleSize(scope);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  if (!writes || scope.agent !== SAMPLE.agent || size.data === undefined) return null;
  const perform = (work: () => Promise<void>) => async () => {
    setBusy(true);
    setError(null);
    await work().catch(setError);
    setBusy(false);
    await queries.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'me' });
  };
  return (
    <div className="actions">
      {error && <Failure error={error} />}
      {size.data === 0 ? (
        <button type="button" className="primary" disabled={busy} onClick={() => void perform(fillSample)()}>
          {words.tryIt.fill}
        </button>
      ) : (
        <button type="button" disabled={busy} onClick={() => void perform(removeSample)()}>
          {words.tryIt.remove(size.data)}
        </button>
      )}
    </div>
  );
}
