/** Recalls that were kept, the newest first. */
import type { Scope } from '../../parts/address';
import type { Changes } from '../../parts/filters';
import { ago } from '../../parts/format';
import { Answer } from '../../parts/states';
import { useLanguage, useWords } from '../../words';
import { useKeptRecalls } from './queries';

type Props = { scope: Scope; recall: string | null; change: (changes: Changes) => void };

export function Kept({ scope, recall, change }: Props) {
  const words = useWords();
  const language = useLanguage();
  const kept = useKeptRecalls(scope);
  const now = Date.now();
  return (
    <nav className="kept" aria-label={words.ask.kept}>
      <h3>{words.ask.kept}</h3>
      <Answer query={kept} lines={4}>
        {({ recalls }) =>
          recalls.length === 0 ? (
            <p className="soft small">{words.ask.noneKept}</p>
          ) : (
            <ul>
              {recalls.map((each) => (
                <li key={each.recall_id}>
                  <button
                    type="button"
                    className="plain"
                    aria-current={each.recall_id === recall ? 'true' : undefined}
                    onClick={() =>
                      change({
                        recall: each.recall_id,
                        q: each.text,
                        as_of: null,
                        at: null,
                        weights: null,
                        memory: null,
                      })
                    }
                  >
                    <span className="lines">
                      <bdi>{each.text.slice(0, 200)}</bdi>
                    </span>
                    <small className="soft">
                      {ago(each.asked_at, now, language)} · {words.ask.hitCount(each.hits)}
                    </small>
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </nav>
  );
}
