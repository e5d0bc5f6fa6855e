/** Make a key: no more rights and trust than one has; its secret is shown once. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type Schemas, take } from '../../api/client';
import { useRights } from '../../api/me';
import { Confirm, Dialog } from '../../parts/dialog';
import { Copyable } from '../../parts/states';
import { useWords } from '../../words';

type Wanted = { name: string; rights: string[]; trust: number; agent: string; user: string; hours: string };

export function MakeKey({ onClose }: { onClose: () => void }) {
  const words = useWords();
  const { me } = useRights();
  const queries = useQueryClient();
  const [secret, setSecret] = useState<string | null>(null);
  const [wanted, setWanted] = useState<Wanted>(() => ({
    name: '',
    rights: me.rights.filter((right) => right === 'read' || right === 'write'),
    trust: Math.min(50, me.trust),
    agent: '',
    user: '',
    hours: '',
  }));
  const close = () => {
    onClose();
    void queries.invalidateQueries({ queryKey: ['keys'] });
  };
  if (secret !== null)
    return (
      <Dialog title={words.keys.make} onClose={close}>
        <p>{words.keys.secret}</p>
        <Copyable text={secret} />
        <footer>
          <button type="button" className="primary" onClick={close}>
            {words.keys.done}
          </button>
        </footer>
      </Dialog>
    );
  const make = async () => setSecret((await take(api.POST('/v1/keys', { body: toBody(wanted) }))).secret);
  return (
    <Confirm
      title={words.keys.make}
      action={words.keys.make}
      disabled={wanted.name.trim() === '' || wanted.rights.length === 0}
      stays
      onClose={onClose}
      onConfirm={make}
    >
      <Rights wanted={wanted} onChange={setWanted} />
      <Bounds wanted={wanted} onChange={setWanted} />
    </Confirm>
  );
}

const toBody = ({ name, rights, trust, agent, user, hours }: Wanted): Schemas['KeyBody'] => ({
  name,
  rights: rights as Schemas['Right'][],
  trust,
  ...(agent && { agent }),
  ...(agent && user && { user }),
  ...(hours && { expires_at: new Date(Date.now() + Number(hours) * 3_600_000).toISOString() }),
});

type PartProps = { wanted: Wanted; onChange: (wanted: Wanted) => void };

function Rights({ wanted, onChange }: PartProps) {
  const words = useWords();
  const { me } = useRights();
  const { rights } = wanted;
  const toggle = (right: string) =>
    onChange({
      ...wanted,
      rights: rights.includes(right) ? rights.filter((each) => each !== right) : [...rights, right],
    });
  return (
    <>
      <label className="field">
        <span>{words.keys.name}</span>
        <input required value={wanted.name} onChange={(event) => onChange({ ...wanted, name: event.target.value })} />
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
          {words.keys.trust} <b>{wanted.trust}</b>
        </span>
        <input
          type="range"
          min={0}
          max={me.trust}
          value={wanted.trust}
          onChange={(event) => onChange({ ...wanted, trust: Number(event.target.value) })}
        />
      </label>
    </>
  );
}

function Bounds({ wanted, onChange }: PartProps) {
  const words = useWords();
  return (
    <div className="bar">
      <label className="field grow">
        <span>{words.keys.agent}</span>
        <input value={wanted.agent} onChange={(event) => onChange({ ...wanted, agent: event.target.value })} />
      </label>
      <label className="field grow">
        <span>{words.keys.user}</span>
        <input
          value={wanted.user}
          disabled={wanted.agent === ''}
          onChange={(event) => onChange({ ...wanted, user: event.target.value })}
        />
      </label>
      <label className="field">
        <span>{words.keys.hours}</span>
        <input
          type="number"
          min={1}
          value={wanted.hours}
          placeholder={words.keys.never}
          onChange={(event) => onChange({ ...wanted, hours: event.target.value })}
        />
      </label>
    </div>
  );
}
