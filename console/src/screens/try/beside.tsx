/** What memory did for one turn: recalled, put into the prompt, stored and learned. */
import type { Scope } from '../../parts/address';
import { BudgetBar } from '../../parts/budget-bar';
import { Content, Kind, OpenMemory } from '../../parts/memory';
import { bounds } from '../../parts/shares';
import { Answer } from '../../parts/states';
import { WhyBar } from '../../parts/why-bar';
import { useWords } from '../../words';
import { type Turn, useLearned } from './queries';

type Props = { scope: Scope; turn: Turn; onOpen: (id: string) => void };

export function Beside({ scope, turn, onOpen }: Props) {
  return (
    <>
      <Recalled turn={turn} onOpen={onOpen} />
      <Held turn={turn} />
      <Learned scope={scope} turn={turn} onOpen={onOpen} />
    </>
  );
}

function Recalled({ turn, onOpen }: Omit<Props, 'scope'>) {
  const words = useWords();
  const { hits } = turn.prompt;
  const scale = bounds(hits);
  return (
    <section className="card">
      <h2>{words.tryIt.recalled(hits.length)}</h2>
      {hits.length === 0 ? (
        <p className="soft">{words.ask.noHits}</p>
      ) : (
        <ul className="recalled">
          {hits.map((hit) => (
            <li key={hit.memory.id}>
              <button type="button" className="plain" onClick={() => onOpen(hit.memory.id)}>
                <Kind kind={hit.memory.kind} />
                <span className="lines">
                  <Content memory={hit.memory} most={300} />
                </span>
              </button>
              <WhyBar hit={hit} low={scale.low} high={scale.high} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Held({ turn }: { turn: Turn }) {
  const words = useWords();
  return (
    <section className="card">
      <h2>{words.tryIt.held}</h2>
      <BudgetBar spending={turn.prompt.spending} />
      <details>
        <summary>{words.tryIt.whole}</summary>
        <ol className="prompt-messages">
          {turn.prompt.messages.map((message, place) => (
            <li key={place}>
              <b className="role">{String(message.role)}</b>
              <bdi>{typeof message.content === 'string' ? message.content : JSON.stringify(message.content)}</bdi>
            </li>
          ))}
        </ol>
      </details>
    </section>
  );
}

function Learned({ scope, turn, onOpen }: Props) {
  const words = useWords();
  const learned = useLearned(scope, turn);
  return (
    <section className="card" aria-live="polite">
      <h2>{words.tryIt.learned}</h2>
      <Answer query={learned} lines={2}>
        {(memories) =>
          memories.length === 0 ? (
            <p className="soft">{words.tryIt.nothingStored}</p>
          ) : (
            <ul className="trail">
              {memories.map((memory) => (
                <li key={memory.id}>
                  <OpenMemory memory={memory} onOpen={onOpen} />
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </section>
  );
}
