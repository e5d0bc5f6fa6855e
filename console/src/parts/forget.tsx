/** Forgetting shows first what goes with it; correcting keeps the past. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type Memory, recollect, take } from '../api/client';
import { useWords } from '../words';
import type { Scope } from './address';
import { Confirm } from './dialog';
import { Content, Kind } from './memory';
import { Answer } from './states';

type ForgetProps = { scope: Scope; memory: Memory; onClose: () => void; onDone: () => void };

const SHOWN = 50;

/** What would go with a memory; nothing is done. */
export const usePreview = (scope: Scope, id: string, enabled = true) =>
  useQuery({
    queryKey: ['forget', scope, id],
    enabled,
    staleTime: 0,
    queryFn: async () => {
      const ids = await recollect.mind(scope.agent, scope.user).forget([id], { dryRun: true });
      const first = [id, ...ids.filter((each) => each !== id)].slice(0, SHOWN);
      const { memories } = await take(api.GET('/v1/memories', { params: { query: { ...scope, ids: first } } }));
      return { ids, memories };
    },
  });

export function Preview({ preview }: { preview: ReturnType<typeof usePreview> }) {
  const words = useWords();
  return (
    <Answer query={preview} lines={3}>
      {({ ids, memories }) => (
        <>
          <h3>{words.mind.goesWithIt(ids.length)}</h3>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard */}
          <ul className="preview" tabIndex={0}>
            {memories.map((each) => (
              <li key={each.id}>
                <Kind kind={each.kind} />
                <span className="lines">
                  <Content memory={each} most={300} />
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Answer>
  );
}

export function ForgetDialog({ scope, memory, onClose, onDone }: ForgetProps) {
  const words = useWords();
  const preview = usePreview(scope, memory.id);
  const forget = async () => {
    await recollect.mind(scope.agent, scope.user).forget([memory.id]);
    onDone();
  };
  return (
    <Confirm
      title={words.mind.forgetTitle}
      action={words.mind.forgetNow(preview.data?.ids.length ?? 1)}
      destroys
      disabled={!preview.data}
      onClose={onClose}
      onConfirm={forget}
    >
      <p>{words.mind.forgetSays}</p>
      <Preview preview={preview} />
    </Confirm>
  );
}

type ReviseProps = { scope: Scope; memory: Memory; onClose: () => void; onDone: (id: string) => void };

export function ReviseDialog({ scope, memory, onClose, onDone }: ReviseProps) {
  const words = useWords();
  const [content, setContent] = useState(memory.content);
  const revise = async () => {
    const params = { path: { memory_id: memory.id } };
    const revised = await take(api.PATCH('/v1/memories/{memory_id}', { params, body: { ...scope, content } }));
    onDone(revised.id);
  };
  return (
    <Confirm
      title={words.mind.reviseTitle}
      action={words.mind.reviseNow}
      disabled={content.trim() === '' || content === memory.content}
      onClose={onClose}
      onConfirm={revise}
    >
      <p>{words.mind.reviseSays}</p>
      <label className="field">
        <span>{words.mind.newContent}</span>
        <textarea rows={6} value={content} dir="auto" onChange={(event) => setContent(event.target.value)} />
      </label>
    </Confirm>
  );
}
