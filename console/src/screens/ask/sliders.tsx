import { familyOf } from '../../parts/shares';
import { useWords } from '../../words';
import type { Explanation } from './queries';
import { range, split, type Weights } from './weights';

type Props = {
  told: Explanation;
  weights: Weights;
  onChange: (name: string, value: number, usual: number) => void;
  onReset: () => void;
  /** Whether the recall is asked anew instead of being replayed. */
  anew: boolean;
};
const CLASS = { meaning: 'meaning', words: 'words', who: 'who-family', time: 'time-family', form: 'form' } as const;

export function Sliders({ told, weights, onChange, onReset, anew }: Props) {
  const words = useWords();
  const { used, unused } = split(told.weights, told.placings, weights);
  const changed = Object.keys(weights).length;
  const slider = (name: string) => {
    const usual = told.weights[name] ?? 0;
    const value = weights[name] ?? usual;
    return (
      <label key={name} className="slider">
        <span>
          <i className={`swatch ${CLASS[familyOf(name)]}`} aria-hidden="true" />
          {name}
        </span>
        <input
          type="range"
          {...range(usual)}
          step={0.1}
          value={value}
          onChange={(event) => onChange(name, Number(event.target.value), usual)}
        />
        <output className={value === usual ? '' : 'changed'}>{value.toFixed(1)}</output>
      </label>
    );
  };
  return (
    <section className="card">
      <header className="between">
        <h2>{words.ask.weights}</h2>
        <button type="button" className="quiet" onClick={onReset} disabled={changed === 0}>
          {words.ask.reset}
        </button>
      </header>
      <p className="soft small">{anew ? words.ask.askedAnew : words.ask.replayed}</p>
      {used.map(slider)}
      {unused.length > 0 && (
        <details>
          <summary>{words.ask.unused(unused.length)}</summary>
          {unused.map(slider)}
        </details>
      )}
    </section>
  );
}
