/** How a memory is shown: always as text, in a direction of its own, never as markup. */
import type { ReactNode } from 'react';
import type { Memory } from '../api/client';
import { useWords } from '../words';

export function Kind({ kind }: { kind: string }) {
  const words = useWords();
  return <span className={`kind ${kind}`}>{words.kinds[kind as keyof typeof words.kinds] ?? kind}</span>;
}

export function Importance({ value }: { value: number }) {
  const words = useWords();
  const says = words.mind.importanceIs(value);
  return (
    <span className="importance" title={says} role="img" aria-label={says}>
      <i style={{ width: `${Math.min(10, value) * 10}%` }} />
    </span>
  );
}

type Shown = Pick<Memory, 'content' | 'speaker' | 'role'>;

/** A content; what is very long is cut, and says so. */
export function Content({ memory, most = 4000 }: { memory: Shown; most?: number }) {
  const words = useWords();
  const who = memory.speaker || (memory.role ? words.conversations.roles[memory.role] : '');
  const cut = memory.content.length > most;
  return (
    <bdi>
      {who && <span className="soft">{who}: </span>}
      {cut ? `${memory.content.slice(0, most)} …` : memory.content}
    </bdi>
  );
}

type OpenProps = { memory: Memory; onOpen: (id: string) => void; children?: ReactNode };

/** A memory in a list, to be opened; what stands before its content is up to the list. */
export function OpenMemory({ memory, onOpen, children }: OpenProps) {
  return (
    <button type="button" className="plain" onClick={() => onOpen(memory.id)}>
      <Kind kind={memory.kind} />
      <span className="lines">
        {children}
        <Content memory={memory} most={300} />
      </span>
    </button>
  );
}

/** Why a memory is not recalled, if it is not. */
export function StateBadge({ state }: { state: string | null | undefined }) {
  const words = useWords();
  const said = words.mind.states[state as keyof typeof words.mind.states];
  return state && state !== 'current' && said ? <span className="badge">{said}</span> : null;
}
