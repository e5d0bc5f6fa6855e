/** Make a key: no more rights and trust than one has; its secret is shown once. */
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, type Schemas, take } from '../../api/client';
import { useRights } from '../../api/me';
import { Dialog } from '../../parts/dialog';
import { Copyable, Failure } from '../../parts/states';
import { useWords } from '../../words';

type Right = Schemas['Right'];

export function MakeKey({ onClose }: { onClose: () => void }) {
  const words = useWords();
  const queries = useQueryClient();
  const [secret, setSecret] = useState<string | null>(null);
  const close = () => {
    onClose();
    void queries.invalidateQueries({ queryKey: ['keys'] });
  };
  return (
    <Dialog title={words.keys.make} onClose={close}>
      {secret === null ? (
        <Wanted onMade={setSecret} onClose={close} />
      ) : (
        <div className="known">
          <p>{words.keys.secret}</p>
          <Copyable text={secret} />
          <footer>
            <button type="button" className="primary" onClick={close}>
              {words.keys.done}
            </button>
          </footer>
        </div>
      )}
    </Dialog>
  );
}

function Wanted({ onMade, onClose }: { onMade: (secret: string) => void; onClose: () => void }) {
  const words = useWords();
  const { me } = useRights();
  const [name, setName] = useState('');
  const [rights, setRights] = useState<string[]>(me.rights.filter((right) => right === 'read' || right === 'write'));
  const [trust, setTrust] = useState(Math.min(50, me.trust));
  const [agent, setAgent] = useState('');
  const [user, setUser] = useState('');
  const [hours, setHours] = useState('');
  const [error, setError] = useState<Error | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setError(null);
    const body = {
      name,
      rights: rights as Right[],
      trust,
      ...(agent && { agent }),
      ...(agent && user && { user }),
      ...(hours && { expires_at: new Date(Date.now() + Number(hours) * 3_600_000).toISOString() }),
    };
    try {
      onMade((await take(api.POST('/v1/keys', { body }))).secret);
    } catch (failure) {
      setError(failure as Error);
    }
  };
  const toggle = (right: string) =>
    setRights(rights.includes(right) ? rights.filter((each) => each !== right) : [...rights, right]);
  return (
    <form onSubmit={submit}>
      <label className="field">
        <span>{words.keys.name}</span>
        <input required value={name} onChange={(event) => setName(event.target.value)} />
        <small className="soft">{words.keys.nameHint}</small>
      </label>
      <fieldset className="field">
        <legend>{words.keys.rights}</legend>
        {[...me.rights].sort().map((right) => (
          <label key={right} className="useful">
            <input type="checkbox" checked={rights.includes(right)} onChange={() => toggle(right)} />
            {right}
          </label>
        ))}
      </fieldset>
      <label className="field">
        <span>
          {words.keys.trust} <b>{trust}</b>
        </span>
        <input
          type="range"
          min={0}
          max={me.trust}
          value={trust}
          onChange={(event) => setTrust(Number(event.target.value))}
        />
      </label>
      <div className="bar">
        <label className="field grow">
          <span>{words.keys.agent}</span>
          <input value={agent} onChange={(event) => setAgent(event.target.value)} />
        </label>
        <label className="field grow">
          <span>{words.keys.user}</span>
          <input value={user} disabled={agent === ''} onChange={(event) => setUser(event.target.value)} />
        </label>
        <label className="field">
          <span>{words.keys.hours}</span>
          <input
            type="number"
            min={1}
            value={hours}
            placeholder={words.keys.never}
            onChange={(event) => setHours(event.target.value)}
          />
        </label>
      </div>
      {error && <Failure error={error} />}
      <footer>
        <button type="button" onClick={onClose}>
          {words.states.cancel}
        </button>
        <button type="submit" className="primary" disabled={name.trim() === '' || rights.length === 0}>
          {words.keys.make}
        </button>
      </footer>
    </form>
  );
}
