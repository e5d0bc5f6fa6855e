/** The budget of a prompt: what went in, and what fell out. */
import type { UseQueryResult } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { Scope } from '../../parts/address';
import { BudgetBar } from '../../parts/budget-bar';
import type { Changes } from '../../parts/filters';
import { Kind } from '../../parts/memory';
import { Answer } from '../../parts/states';
import { useWords } from '../../words';
import { LeftOut } from './left-out';
import { type Prompt, type Question, useConversation } from './queries';

type Props = {
  scope: Scope;
  conversation: string;
  question: Question;
  prompt: UseQueryResult<Prompt>;
  change: (changes: Changes) => void;
  onOpen: (id: string) => void;
};

export function PromptView({ scope, conversation, question, prompt, change, onOpen }: Props) {
  const words = useWords();
  return (
    <section className="card prompt" aria-busy={prompt.isFetching}>
      <Asked scope={scope} conversation={conversation} question={question} change={change} />
      {!prompt.isEnabled && <p className="soft">{words.conversations.askFirst}</p>}
      <Answer query={{ ...prompt, isPending: prompt.isPending && prompt.isEnabled }} lines={3}>
        {(data) => (
          <>
            <BudgetBar spending={data.spending} />
            <div className="in-out">
              <div>
                <h3>{words.conversations.wentIn}</h3>
                <In prompt={data} onOpen={onOpen} />
              </div>
              <div>
                <h3>{words.conversations.fellOut}</h3>
                <LeftOut scope={scope} prompt={data} onOpen={onOpen} />
              </div>
            </div>
          </>
        )}
      </Answer>
    </section>
  );
}

type AskedProps = Pick<Props, 'scope' | 'conversation' | 'question' | 'change'>;

/** The question, the budget and the branch: each change builds the prompt anew, a moment later. */
function Asked({ scope, conversation, question, change }: AskedProps) {
  const words = useWords();
  const threads = useConversation(scope, conversation).data?.threads ?? [];
  const [text, setText] = useState(question.text);
  const [budget, setBudget] = useState(question.budget);
  useEffect(() => {
    const later = setTimeout(() => change({ q: text, budget: budget === 1000 ? null : String(budget) }), 250);
    return () => clearTimeout(later);
  }, [text, budget, change]);
  return (
    <div className="bar">
      <label className="field grow">
        <span>{words.conversations.question}</span>
        <input type="search" dir="auto" value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      <label className="field budget-field">
        <span>
          {words.conversations.budget} <b>{budget}</b>
        </span>
        <input
          type="range"
          min={100}
          max={Math.max(8000, budget)}
          step={50}
          value={budget}
          onChange={(event) => setBudget(Number(event.target.value))}
        />
      </label>
      {threads.length > 1 && (
        <label className="field">
          <span>{words.conversations.branch}</span>
          <select value={question.leaf ?? ''} onChange={(event) => change({ leaf: event.target.value })}>
            <option value="">{words.conversations.newest}</option>
            {threads.map((leaf) => (
              <option key={leaf.id} value={leaf.id}>
                {`${leaf.number} · ${leaf.content.slice(0, 40)}`}
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

function In({ prompt, onOpen }: { prompt: Prompt; onOpen: (id: string) => void }) {
  const words = useWords();
  const said = prompt.history.messages;
  const [first, last] = [said[0]?.number, said.at(-1)?.number];
  return (
    <ul className="entries">
      {first !== undefined && last !== undefined && (
        <li>
          <span className="kind message">{words.conversations.parts.history}</span>
          <span>{words.conversations.turns(first, last, said.length)}</span>
          <span className="number soft">{prompt.spending.history}</span>
        </li>
      )}
      {prompt.summary && (
        <li>
          <Kind kind="summary" />
          <button type="button" className="plain lines" onClick={() => onOpen(prompt.summary?.id ?? '')}>
            <bdi>{prompt.summary.content}</bdi>
          </button>
          <span className="number soft">{prompt.spending.summary}</span>
        </li>
      )}
      {prompt.lines.map((line) => (
        <li key={line.memory_id}>
          <Kind kind={line.kind} />
          <button type="button" className="plain lines" onClick={() => onOpen(line.memory_id)}>
            <bdi>{line.text}</bdi>
          </button>
          <span className="number soft">{line.tokens}</span>
        </li>
      ))}
    </ul>
  );
}
