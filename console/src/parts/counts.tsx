/** How much goes, by what it is, before it goes. */
import { useLanguage, useWords } from '../words';
import { count } from './format';

type CountsProps = { counts: Record<string, number>; names: Record<string, string> };

/** What there is none of is left out, and so is what has no name for people. */
export function Counts({ counts, names }: CountsProps) {
  const words = useWords();
  const language = useLanguage();
  const shown = Object.entries(names).filter(([what]) => (counts[what] ?? 0) > 0);
  if (shown.length === 0) return <p className="soft">{words.states.nothingGoes}</p>;
  return (
    <ul className="counts">
      {shown.map(([what, name]) => (
        <li key={what}>
          <b className="number">{count(counts[what] ?? 0, language)}</b> {name}
        </li>
      ))}
    </ul>
  );
}
