/** How the cue was read, and what each channel did. */
import { day } from '../../parts/format';
import { useWords } from '../../words';
import type { Explanation } from './queries';

export function Reading({ told }: { told: Explanation }) {
  const words = useWords();
  const { facets } = told;
  const said = [
    `${told.milliseconds.toFixed(0)} ms`,
    facets.keywords.length > 0 && words.ask.read(facets.keywords.join(', ')),
    facets.names.length > 0 && words.ask.names(facets.names.join(', ')),
    facets.topics.length > 0 && words.ask.topics(facets.topics.join(', ')),
    facets.periods.length > 0 &&
      words.ask.periods(facets.periods.map((each) => `${day(each.start)} – ${day(each.end)}`).join(', ')),
    facets.asks.length > 0 && words.ask.asksFor(facets.asks.map((each) => words.ask.asked[each] ?? each).join(', ')),
  ];
  return (
    <p className="soft reading">
      <bdi>{said.filter(Boolean).join(' · ')}</bdi>
    </p>
  );
}

export function Channels({ told }: { told: Explanation }) {
  const words = useWords();
  const names = Object.keys(told.methods).sort(
    (a, b) => (told.proposals[b]?.length ?? 0) - (told.proposals[a]?.length ?? 0) || (a < b ? -1 : 1),
  );
  return (
    <section className="card">
      <h2>{words.ask.channels}</h2>
      <table className="channels">
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td className="number">{told.proposals[name]?.length ?? 0}</td>
              <td className="soft">{told.methods[name]}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
