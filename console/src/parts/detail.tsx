/** One memory with all that is known of it, and what can be done with it. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type Memory, take } from '../api/client';
import { useRights } from '../api/me';
import { useLanguage, useWords } from '../words';
import type { Scope } from './address';
import { ForgetDialog, ReviseDialog } from './forget';
import { ago, moment } from './format';
import { Icon } from './icons';
import { Content, Importance, Kind, StateBadge } from './memory';
import { Answer } from './states';
import { Trails, useTrail } from './trail-view';

type Props = { scope: Scope; id: string; onOpen: (id: string) => void; onClose: () => void };

export function Detail({ scope, id, onOpen, onClose }: Props) {
  const words = useWords();
  const memory = useQuery({
    queryKey: ['memory', scope, id],
    queryFn: ({ signal }) =>
      take(api.GET('/v1/memories/{memory_id}', { params: { path: { memory_id: id }, query: scope }, signal })),
  });
  return (
    <aside className="detail card" aria-label={words.mind.detail}>
      <button type="button" className="quiet close" onClick={onClose} aria-label={words.states.close}>
        <Icon name="close" />
      </button>
      <Answer query={memory} lines={6}>
        {(data) => (
          <>
            <p className="kinds">
              <Kind kind={data.kind} /> <Importance value={data.importance} /> <StateBadge state={data.state} />
              {data.pinned && <span className="badge">{words.mind.pinned}</span>}
              {data.contested && <span className="badge bad">{words.mind.contested}</span>}
            </p>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard */}
            <div className="whole" tabIndex={0}>
              <Content memory={data} most={40_000} />
            </div>
            <Acts scope={scope} memory={data} onClose={onClose} onOpen={onOpen} />
            <About memory={data} />
            <Trails scope={scope} id={id} onOpen={onOpen} />
            <Versions scope={scope} memory={data} onOpen={onOpen} />
          </>
        )}
      </Answer>
    </aside>
  );
}

function About({ memory }: { memory: Memory }) {
  const words = useWords();
  const language = useLanguage();
  const rows: [string, string | null | undefined][] = [
    [words.mind.occurred, moment(memory.occurred_at)],
    [words.mind.stored, moment(memory.created_at)],
    [words.mind.accessed, ago(memory.last_accessed_at, Date.now(), language)],
    [
      words.mind.validity,
      memory.valid_at || memory.invalid_at ? `${moment(memory.valid_at)} – ${moment(memory.invalid_at)}` : '',
    ],
    [words.mind.superseded, memory.superseded_at ? moment(memory.superseded_at) : ''],
    [words.mind.expires, memory.expires_at ? moment(memory.expires_at) : ''],
    [words.mind.conversation, memory.conversation],
    [words.mind.origin, memory.origin],
    [words.mind.trust, String(memory.trust)],
    [words.mind.keywords, memory.keywords.slice(0, 12).join(', ')],
  ];
  return (
    <dl className="facts-of">
      {rows.map(([name, value]) =>
        value ? (
          <div key={name} className="pair">
            <dt>{name}</dt>
            <dd>
              <bdi>{value}</bdi>
            </dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}

type ActsProps = { scope: Scope; memory: Memory; onClose: () => void; onOpen: (id: string) => void };

function Acts({ scope, memory, onClose, onOpen }: ActsProps) {
  const words = useWords();
  const { writes } = useRights();
  const queries = useQueryClient();
  const [open, setOpen] = useState<'forget' | 'revise' | null>(null);
  if (!writes) return null;
  const refresh = () => queries.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'me' });
  const ids = [memory.id];
  const pin = async () => {
    const params = { path: { memory_id: memory.id } };
    await take(api.PATCH('/v1/memories/{memory_id}', { params, body: { ...scope, pinned: !memory.pinned } }));
    await refresh();
  };
  const restore = async () => {
    await take(api.POST('/v1/fade/restore', { body: { ...scope, ids } }));
    await refresh();
  };
  return (
    <p className="actions">
      {memory.superseded_at === null && memory.kind !== 'fact' && (
        <button type="button" onClick={() => setOpen('revise')}>
          {words.mind.revise}
        </button>
      )}
      <button type="button" onClick={() => void pin()} aria-pressed={memory.pinned}>
        <Icon name="pin" />
        {memory.pinned ? words.mind.unpin : words.mind.pin}
      </button>
      {memory.state === 'faded' && (
        <button type="button" onClick={() => void restore()}>
          {words.mind.restore}
        </button>
      )}
      <button type="button" onClick={() => setOpen('forget')}>
        {words.mind.forget}
      </button>
      {open === 'forget' && (
        <ForgetDialog
          scope={scope}
          memory={memory}
          onClose={() => setOpen(null)}
          onDone={async () => {
            onClose();
            await refresh();
          }}
        />
      )}
      {open === 'revise' && (
        <ReviseDialog
          scope={scope}
          memory={memory}
          onClose={() => setOpen(null)}
          onDone={async (id) => {
            onOpen(id);
            await refresh();
          }}
        />
      )}
    </p>
  );
}

function Versions({ scope, memory, onOpen }: { scope: Scope; memory: Memory; onOpen: (id: string) => void }) {
  const words = useWords();
  const all = useTrail(scope, memory.id).data?.versions ?? [];
  if (all.length < 2) return null;
  return (
    <section className="way">
      <h3>{words.mind.versions}</h3>
      <ol className="trail">
        {all.map((version, place) => (
          <li key={version.id}>
            <button
              type="button"
              className="plain"
              onClick={() => onOpen(version.id)}
              aria-current={version.id === memory.id ? 'true' : undefined}
            >
              <span className="soft">
                v{place + 1} · {moment(version.created_at)}
              </span>
              <span className="lines">
                <Content memory={version} most={300} />
              </span>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
