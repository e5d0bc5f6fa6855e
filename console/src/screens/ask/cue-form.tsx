/** The cue, and the time machine: what was believed, and what was true, at a moment. */

import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useRights } from '../../api/me';
import type { Scope } from '../../parts/address';
import type { Changes } from '../../parts/filters';
import { toInput, toInstant } from '../../parts/format';
import { Failure } from '../../parts/states';
import { useWords } from '../../words';
import { type Cue, keepRecall } from './queries';

type Props = { scope: Scope; cue: Cue; change: (changes: Changes) => void; busy: boolean };

export function CueForm({ scope, cue, change, busy }: Props) {
  const words = useWords();
  const { writes } = useRights();
  const queries = useQueryClient();
  const [text, setText] = useState(cue.text);
  const [asOf, setAsOf] = useState(toInput(cue.asOf));
  const [at, setAt] = useState(toInput(cue.at));
  const [error, setError] = useState<Error | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setError(null);
    const asked: Cue = { text: text.trim(), asOf: toInstant(asOf) ?? null, at: toInstant(at) ?? null };
    try {
      // What is asked of the past is not kept: it is another recall than the agent's.
      const keeps = writes && !asked.asOf && !asked.at;
      const recall = keeps ? await keepRecall(scope, asked) : null;
      change({ q: asked.text, as_of: asked.asOf, at: asked.at, recall, weights: null, memory: null });
      await queries.invalidateQueries({ queryKey: ['recalls', scope] });
    } catch (failure) {
      setError(failure as Error);
    }
  };
  return (
    <form onSubmit={submit} className="cue">
      <label className="field grow">
        <span>{words.ask.cue}</span>
        <input type="search" value={text} required dir="auto" onChange={(event) => setText(event.target.value)} />
      </label>
      <label className="field">
        <span>{words.ask.asOf}</span>
        <input type="datetime-local" value={asOf} onChange={(event) => setAsOf(event.target.value)} />
      </label>
      <label className="field">
        <span>{words.ask.at}</span>
        <input type="datetime-local" value={at} onChange={(event) => setAt(event.target.value)} />
      </label>
      <button type="submit" className="primary" disabled={busy}>
        {words.ask.recall}
      </button>
      {error && <Failure error={error} />}
    </form>
  );
}
