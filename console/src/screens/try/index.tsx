/** A chat beside its memory: what was recalled, what the prompt held, and what was learned a moment later. */
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { useRights } from '../../api/me';
import type { Scope } from '../../parts/address';
import { Detail } from '../../parts/detail';
import { useFilters } from '../../parts/filters';
import { Head } from '../../parts/frame';
import { Answer, Copyable, Failure, Loading } from '../../parts/states';
import { useWords } from '../../words';
import { Beside } from './beside';
import { say, type Turn, useStatus } from './queries';
import { Sample } from './sample';

export default function Try({ scope }: { scope: Scope }) {
  const words = useWords();
  const [filters, change] = useFilters();
  const memory = filters.get('memory');
  const [fallback] = useState(() => `try-${Date.now().toString(36)}`);
  const conversation = filters.get('conversation') ?? fallback;
  const open = (id: string | null) => change({ memory: id });
  const status = useStatus();
  return (
    <div className="try">
      <Head title={words.tryIt.title} says={words.tryIt.says}>
        <Sample scope={scope} />
      </Head>
      <Answer query={status}>
        {(data) => (
          <Chat key={conversation} scope={scope} conversation={conversation} model={data.chat_model} onOpen={open} />
        )}
      </Answer>
      {memory && (
        <div className="drawer">
          <Detail key={memory} scope={scope} id={memory} onOpen={open} onClose={() => open(null)} />
        </div>
      )}
    </div>
  );
}

type ChatProps = { scope: Scope; conversation: string; model: string; onOpen: (id: string) => void };

function Chat({ scope, conversation, model, onOpen }: ChatProps) {
  const words = useWords();
  const { writes } = useRights();
  const chat = useChat(scope, conversation, model !== '');
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    end.current?.scrollIntoView({ block: 'nearest' });
  }, [chat.turns, chat.waiting]);
  const turn = chat.turns.find((each) => each.id === chat.shown);
  return (
    <div className="try-columns">
      <section className="card chat" aria-label={words.tryIt.chat}>
        <Turns {...chat} model={model} />
        {chat.error && <Failure error={chat.error} />}
        <div ref={end} />
        <Say busy={chat.waiting !== null} onSay={chat.speak} />
        {model === '' && <NoModel />}
        {!writes && <p className="soft small">{words.tryIt.notStored}</p>}
      </section>
      <section className="beside" aria-label={words.tryIt.beside} aria-busy={chat.waiting !== null}>
        {turn ? (
          <Beside key={turn.id} scope={scope} turn={turn} onOpen={onOpen} />
        ) : (
          <div className="card soft">{words.tryIt.start}</div>
        )}
      </section>
    </div>
  );
}

/** The turns of this visit, and the one that is under way. */
function useChat(scope: Scope, conversation: string, model: boolean) {
  const { writes } = useRights();
  const queries = useQueryClient();
  const [turns, setTurns] = useState<Turn[]>([]);
  const [shown, onShow] = useState<string | null>(null);
  const [waiting, setWaiting] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const speak = async (said: string) => {
    setWaiting(said);
    setError(null);
    try {
      const turn = await say(scope, conversation, said, { model, writes });
      setTurns((before) => [...before, turn]);
      onShow(turn.id);
      await queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] === 'overview' });
    } catch (failure) {
      setError(failure as Error);
    } finally {
      setWaiting(null);
    }
  };
  return { turns, shown, onShow, waiting, error, speak };
}

function Say({ busy, onSay }: { busy: boolean; onSay: (said: string) => Promise<void> }) {
  const words = useWords();
  const [text, setText] = useState('');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void onSay(text.trim());
    setText('');
  };
  return (
    <form onSubmit={submit}>
      <input
        aria-label={words.tryIt.say}
        value={text}
        dir="auto"
        autoComplete="off"
        placeholder={words.tryIt.say}
        onChange={(event) => setText(event.target.value)}
      />
      <button type="submit" className="primary" disabled={busy || text.trim() === ''}>
        {words.tryIt.send}
      </button>
    </form>
  );
}

type TurnsProps = {
  turns: Turn[];
  shown: string | null;
  waiting: string | null;
  model: string;
  onShow: (id: string) => void;
};

function Turns({ turns, shown, waiting, model, onShow }: TurnsProps) {
  const words = useWords();
  return (
    <ol className="turns" aria-live="polite">
      {turns.map((turn) => (
        <li key={turn.id}>
          <button
            type="button"
            className="plain bubble user"
            aria-pressed={turn.id === shown}
            onClick={() => onShow(turn.id)}
          >
            <bdi>{turn.text}</bdi>
          </button>
          <p className={turn.answer === null ? 'bubble soft' : 'bubble'}>
            <bdi>{turn.answer ?? words.tryIt.noAnswer(turn.prompt.messages.length, turn.prompt.hits.length)}</bdi>
          </p>
        </li>
      ))}
      {waiting !== null && (
        <li>
          <p className="bubble user">
            <bdi>{waiting}</bdi>
          </p>
          {model !== '' && <Loading lines={2} />}
        </li>
      )}
    </ol>
  );
}

/** Without a model the page shows all but the answer, and the line that sets one. */
function NoModel() {
  const words = useWords();
  return (
    <details>
      <summary>{words.tryIt.noModel}</summary>
      <p className="soft small">{words.tryIt.setModel}</p>
      <Copyable text={'RECOLLECT_CHAT_URL=http://127.0.0.1:11434/v1 RECOLLECT_CHAT_MODEL=qwen3:8b recollect up'} />
    </details>
  );
}
