/** A correction is a new fact that replaces the wrong one; that it was believed stays known. */
import { useState } from 'react';
import { api, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { Confirm } from '../../parts/dialog';
import { toInput, toInstant } from '../../parts/format';
import { useWords } from '../../words';
import type { Fact } from './queries';

type Props = { scope: Scope; fact: Fact; onClose: () => void; onDone: () => void };

export function CorrectDialog({ scope, fact, onClose, onDone }: Props) {
  const words = useWords();
  const [predicate, setPredicate] = useState(fact.predicate);
  const [object, setObject] = useState(fact.object_name);
  const [since, setSince] = useState(toInput(fact.span.valid_at));
  const [until, setUntil] = useState(toInput(fact.span.invalid_at));
  const correct = async () => {
    const [valid_at, invalid_at] = [toInstant(since), toInstant(until)];
    const right = {
      subject_id: fact.subject,
      predicate,
      ...(object === fact.object_name ? { object_id: fact.object } : { object }),
      ...(valid_at && { valid_at }),
      ...(invalid_at && { invalid_at }),
      replaces: [fact.id],
    };
    await take(api.POST('/v1/facts', { body: { ...scope, facts: [right] } }));
    onDone();
  };
  return (
    <Confirm
      title={words.knowledge.correctTitle}
      action={words.knowledge.correct}
      disabled={predicate.trim() === '' || object.trim() === ''}
      onClose={onClose}
      onConfirm={correct}
    >
      <p className="soft">{words.knowledge.correctSays}</p>
      <p>
        <bdi>{fact.subject_name}</bdi>
      </p>
      <label className="field">
        <span>{words.knowledge.predicate}</span>
        <input value={predicate} dir="auto" onChange={(event) => setPredicate(event.target.value)} />
      </label>
      <label className="field">
        <span>{words.knowledge.object}</span>
        <input value={object} dir="auto" onChange={(event) => setObject(event.target.value)} />
      </label>
      <div className="bar">
        <label className="field">
          <span>{words.knowledge.trueSince}</span>
          <input type="datetime-local" value={since} onChange={(event) => setSince(event.target.value)} />
        </label>
        <label className="field">
          <span>{words.knowledge.trueUntil}</span>
          <input type="datetime-local" value={until} onChange={(event) => setUntil(event.target.value)} />
        </label>
      </div>
    </Confirm>
  );
}
