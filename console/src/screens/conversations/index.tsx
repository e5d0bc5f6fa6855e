/** What was said, and what a prompt gets of it. */
import type { Scope } from '../../parts/address';
import { Detail } from '../../parts/detail';
import { useFilters } from '../../parts/filters';
import { Head } from '../../parts/frame';
import { Empty } from '../../parts/states';
import { useWords } from '../../words';
import { Acts } from './acts';
import { ConversationList } from './list';
import { PromptView } from './prompt';
import { STATES, type State, useMessages, usePrompt } from './queries';
import { Thread } from './thread';

const BUDGET = 1000;

export default function Conversations({ scope }: { scope: Scope }) {
  const words = useWords();
  const [filters, change] = useFilters();
  const state: State = STATES.find((each) => each === filters.get('state')) ?? 'active';
  const chosen = filters.get('conversation');
  const memory = filters.get('memory');
  const open = (id: string | null) => change({ memory: id });
  return (
    <div className="conversations">
      <Head title={words.conversations.title} says={words.conversations.says}>
        {chosen && <Acts key={chosen} scope={scope} id={chosen} onGone={() => change({ conversation: null })} />}
      </Head>
      <div className="with-list">
        <ConversationList scope={scope} state={state} chosen={chosen} change={change} />
        {chosen && state !== 'deleted' ? (
          <Shown key={chosen} scope={scope} conversation={chosen} onOpen={open} />
        ) : (
          <Empty>{chosen ? words.conversations.hidden : words.conversations.choose}</Empty>
        )}
      </div>
      {memory && (
        <div className="drawer">
          <Detail key={memory} scope={scope} id={memory} onOpen={open} onClose={() => open(null)} />
        </div>
      )}
    </div>
  );
}

type ShownProps = { scope: Scope; conversation: string; onOpen: (id: string) => void };

function Shown({ scope, conversation, onOpen }: ShownProps) {
  const [filters, change] = useFilters();
  const budget = Math.max(1, Number(filters.get('budget')) || BUDGET);
  const question = { text: filters.get('q') ?? '', budget, leaf: filters.get('leaf') };
  const messages = useMessages(scope, conversation);
  const prompt = usePrompt(scope, conversation, question);
  return (
    <div className="conversation">
      <PromptView
        scope={scope}
        conversation={conversation}
        question={question}
        prompt={prompt}
        change={change}
        onOpen={onOpen}
      />
      <Thread
        scope={scope}
        conversation={conversation}
        pages={messages}
        leaf={question.leaf}
        prompt={prompt.data}
        onOpen={onOpen}
      />
    </div>
  );
}
