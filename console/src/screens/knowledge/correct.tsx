/** A fact that changed, or that was never so: the right one is stated, and the other one ends or is forgotten. */
import { useState } from 'react';
import { api, recollect, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { Confirm } from '../../parts/dialog';
import { Preview, usePreview } from '../../parts/forget';
import { toInput, toInstant } from '../../parts/format';
import { useWords } from '../../words';
import type { Fact } from './queries';

type Props = { scope: Scope; fact: Fact; onClose: () => void; onDone: () => void };
type Case = 'changed' | 'wrong';

export function CorrectDialog({ scope, fact, onClose, onDone }: Props) {
  const words = useWords();
  const [which, setWhich] = useState<Case>('changed');
  const [predicate, setPredicate] = useState(fact.predicate);
  const [object, setObject] = useState(fact.object_name);
  const [since, setSince] = useState(() => toInput(new Date().toISOString(), true));
  const preview = usePreview(scope, fact.id, which === 'wrong');
  const same = predicate === fact.predicate && object === fact.object_name;
  const correct = async () => {
    const stated = which === 'changed' ? toInstant(since) : (fact.span.valid_at ?? undefined);
    const right = {
      subject_id: fact.subject,
      predicate,
      ...(object === fact.object_name ? { object_id: fact.object } : { object }),
      ...(stated && { valid_at: stated }),
      ...(which === 'wrong' && fact.span.invalid_at && { invalid_at: fact.span.invalid_at }),
      ...(which === 'changed' && { replaces: [fact.id] }),
    };
    await take(api.POST('/v1/facts', { body: { ...scope, facts: [right] } }));
    if (which === 'wrong') await recollect.mind(scope.agent, scope.user).forget([fact.id]);
    onDone();
  };
  return (
    <Confirm
      title={words.knowledge.correctTitle}
      action={words.knowledge.correct}
      destroys={which === 'wrong'}
      disabled={same || predicate.trim() === '' || object.trim() === '' || (which === 'wrong' && !preview.data)}
      onClose={onClose}
      onConfirm={correct}
    >
      <p>
        <bdi>{fact.text}</bdi>
      </p>
      <Cases which={which} onChoose={setWhich} />
      <label className="field">
        <span>
          <bdi>{fact.subject_name}</bdi> …
        </span>
        <input
          aria-label={words.knowledge.predicate}
          value={predicate}
          dir="auto"
          onChange={(event) => setPredicate(event.target.value)}
        />
      </label>
      <label className="field">
        <span>{words.knowledge.object}</span>
        <input value={object} dir="auto" onChange={(event) => setObject(event.target.value)} />
      </label>
      {which === 'wrong' && <Preview preview={preview} />}
      {which === 'changed' && (
        <label className="field">
          <span>{words.knowledge.trueSince}</span>
          <input type="datetime-local" step={1} value={since} onChange={(event) => setSince(event.target.value)} />
        </label>
      )}
    </Confirm>
  );
}

function Cases({ which, onChoose }: { which: Case; onChoose: (which: Case) => void }) {
  const words = useWords();
  return (
    <ul className="choices">
      {(['changed', 'wrong'] as const).map((each) => (
        <li key={each}>
          <label>
            <input type="radio" name="case" checked={which === each} onChange={() => onChoose(each)} />
            {words.knowledge.cases[each]}
          </label>
        </li>
      ))}
    </ul>
  );
}
