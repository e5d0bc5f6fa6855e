import type { Changes } from '../../parts/filters';
import { useWords } from '../../words';
import { KINDS, STATES } from './query';

type Props = { filters: URLSearchParams; change: (changes: Changes) => void };

export function FilterBar({ filters, change }: Props) {
  const words = useWords();
  const importance = filters.get('importance') ?? '1';
  return (
    <div className="bar">
      <label className="field grow">
        <span>{words.mind.words}</span>
        <input
          type="search"
          value={filters.get('words') ?? ''}
          onChange={(event) => change({ words: event.target.value })}
        />
      </label>
      <Kinds filters={filters} change={change} />
      <label className="field">
        <span>
          {words.mind.importance} ≥ {importance}
        </span>
        <input
          type="range"
          min={1}
          max={10}
          value={importance}
          onChange={(event) => change({ importance: event.target.value === '1' ? null : event.target.value })}
        />
      </label>
      {(['since', 'until'] as const).map((name) => (
        <label key={name} className="field">
          <span>{words.mind[name]}</span>
          <input
            type="date"
            value={filters.get(name) ?? ''}
            onChange={(event) => change({ [name]: event.target.value })}
          />
        </label>
      ))}
      <label className="field">
        <span>{words.mind.state}</span>
        <select
          value={filters.get('state') ?? 'current'}
          onChange={(event) =>
            change({ state: event.target.value === 'current' ? null : event.target.value, memory: null })
          }
        >
          {STATES.map((state) => (
            <option key={state} value={state}>
              {words.mind.states[state]}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Kinds({ filters, change }: Props) {
  const words = useWords();
  const kinds = (filters.get('kind') ?? '').split(',').filter(Boolean);
  const toggle = (kind: string) => {
    const after = kinds.includes(kind) ? kinds.filter((each) => each !== kind) : [...kinds, kind];
    change({ kind: after.join(','), memory: null });
  };
  return (
    <fieldset className="field">
      <legend>{words.mind.kind}</legend>
      <div className="chips">
        {KINDS.map((kind) => (
          <button key={kind} type="button" aria-pressed={kinds.includes(kind)} onClick={() => toggle(kind)}>
            {words.kinds[kind]}
          </button>
        ))}
      </div>
    </fieldset>
  );
}
