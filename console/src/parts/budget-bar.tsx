/** A prompt's budget as one bar. */
import { useWords } from '../words';
import { type BudgetSegment, layBudget, type Spending } from './budget';

export function BudgetBar({ spending }: { spending: Spending }) {
  const words = useWords();
  const laid = layBudget(spending);
  const name = (segment: BudgetSegment) => `${words.conversations.parts[segment.part]} ${segment.tokens}`;
  return (
    <figure className="spending">
      <div className="budget" role="img" aria-label={laid.map(name).join(', ')}>
        {laid.map((segment) => (
          <div
            key={segment.part}
            className={segment.part === 'free' ? 'free' : `${segment.part}-part`}
            style={{ width: `${segment.width}%` }}
            title={name(segment)}
          />
        ))}
      </div>
      <figcaption>
        <ul className="legend">
          {laid.map((segment) => (
            <li key={segment.part}>
              <i className={`${segment.part}-part`} aria-hidden="true" />
              {words.conversations.parts[segment.part]} <b>{segment.tokens}</b>
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}
