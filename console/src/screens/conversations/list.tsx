import type { Scope } from '../../parts/address';
import type { Changes } from '../../parts/filters';
import { ago } from '../../parts/format';
import { Answer, Empty } from '../../parts/states';
import { useLanguage, useWords } from '../../words';
import { STATES, type State, useConversations } from './queries';

type Props = { scope: Scope; state: State; chosen: string | null; change: (changes: Changes) => void };

export function ConversationList({ scope, state, chosen, change }: Props) {
  const words = useWords();
  const language = useLanguage();
  const pages = useConversations(scope, state);
  const now = Date.now();
  const choose = (conversation: string) => change({ conversation, leaf: null, memory: null });
  return (
    <nav className="side-list" aria-label={words.conversations.title}>
      <label className="field">
        <span>{words.conversations.state}</span>
        <select
          value={state}
          onChange={(event) => change({ state: event.target.value, conversation: null, leaf: null, memory: null })}
        >
          {STATES.map((each) => (
            <option key={each} value={each}>
              {words.conversations.states[each]}
            </option>
          ))}
        </select>
      </label>
      <Answer query={pages} lines={6}>
        {(data) => {
          const all = data.pages.flatMap((page) => page.conversations);
          if (all.length === 0) return <Empty>{words.conversations.none}</Empty>;
          return (
            <ul>
              {all.map((each) => (
                <li key={each.id}>
                  <button
                    type="button"
                    className="plain"
                    aria-current={each.id === chosen ? 'true' : undefined}
                    onClick={() => choose(each.id)}
                  >
                    <span className="lines">
                      <bdi>{each.name || each.id}</bdi>
                    </span>
                    <small className="soft">
                      {words.conversations.messages(each.message_count)} · {ago(each.updated_at, now, language)}
                    </small>
                  </button>
                </li>
              ))}
            </ul>
          );
        }}
      </Answer>
      {pages.hasNextPage && (
        <button type="button" onClick={() => void pages.fetchNextPage()}>
          {words.states.more}
        </button>
      )}
    </nav>
  );
}
