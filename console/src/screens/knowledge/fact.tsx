/** One fact in two times, with its versions and its evidence; to correct it, or to say that it is over. */
import { useState } from 'react';
import { api, take } from '../../api/client';
import { useRights } from '../../api/me';
import type { Scope } from '../../parts/address';
import { Confirm } from '../../parts/dialog';
import { moment, toInput, toInstant } from '../../parts/format';
import { Icon } from '../../parts/icons';
import { extent, placeSpan } from '../../parts/spans';
import { Answer } from '../../parts/states';
import { Trails } from '../../parts/trail-view';
import { useWords } from '../../words';
import { CorrectDialog } from './correct';
import { type Fact, useFactVersions } from './queries';

type Props = { scope: Scope; id: string; onOpen: (id: string) => void; onDone: () => void; onClose: () => void };

export function FactView({ scope, id, onOpen, onDone, onClose }: Props) {
  const words = useWords();
  const versions = useFactVersions(scope, id);
  return (
    <section className="card fact-view" aria-label={words.knowledge.chosenFact}>
      <button type="button" className="quiet close" onClick={onClose} aria-label={words.states.close}>
        <Icon name="close" />
      </button>
      <Answer query={versions} lines={5}>
        {(all) => {
          const last = all.find((version) => version.superseded_at === null) ?? all.at(-1);
          if (!last) return null;
          return (
            <>
              <div>
                <h2>
                  <bdi>{last.text}</bdi>
                </h2>
                <Acts scope={scope} fact={last} onDone={onDone} />
                <VersionTable versions={all} />
                <Trails scope={scope} id={last.memory_id ?? last.id} onOpen={onOpen} />
              </div>
              <Belief versions={all} />
            </>
          );
        }}
      </Answer>
    </section>
  );
}

/** Both times as areas: across when it is true, down when it was believed. */
function Belief({ versions }: { versions: Fact[] }) {
  const words = useWords();
  const now = Date.now();
  const world = extent(
    versions.map((each) => ({ from: each.span.valid_at, to: each.span.invalid_at })),
    now,
  );
  const belief = extent(
    versions.map((each) => ({ from: each.created_at, to: each.superseded_at })),
    now,
  );
  const says = versions
    .map((each) => `v${each.version}: ${moment(each.span.valid_at)} – ${moment(each.span.invalid_at)}`)
    .join('; ');
  return (
    <figure className="belief-figure">
      <svg className="belief" viewBox="0 0 100 70" role="img" aria-label={says}>
        {versions.map((each) => {
          const across = placeSpan({ from: each.span.valid_at, to: each.span.invalid_at }, world);
          const down = placeSpan({ from: each.created_at, to: each.superseded_at }, belief);
          const top = down.x * 0.7;
          return (
            <g key={each.version} className={each.superseded_at ? 'gone' : ''}>
              <rect
                className="area"
                x={across.x}
                width={across.width}
                y={top}
                height={Math.max(1.5, down.width * 0.7)}
              />
              <text x={Math.min(94, across.x + 1.2)} y={Math.min(69, top + 4)}>
                v{each.version}
              </text>
            </g>
          );
        })}
      </svg>
      <figcaption className="soft small">
        → {words.knowledge.inWorld} · ↓ {words.knowledge.inBelief}
      </figcaption>
    </figure>
  );
}

function VersionTable({ versions }: { versions: Fact[] }) {
  const words = useWords();
  return (
    <table className="versions">
      <thead>
        <tr>
          <th scope="col">{words.mind.versions}</th>
          <th scope="col">{words.knowledge.inWorld}</th>
          <th scope="col">{words.knowledge.inBelief}</th>
        </tr>
      </thead>
      <tbody>
        {versions.map((each) => (
          <tr key={each.version} className={each.superseded_at ? 'soft' : ''}>
            <th scope="row">
              v{each.version} <bdi>{each.text}</bdi>
            </th>
            <td>
              {moment(each.span.valid_at)} – {moment(each.span.invalid_at)}
            </td>
            <td>
              {moment(each.created_at)} – {each.superseded_at ? moment(each.superseded_at) : words.knowledge.now}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Acts({ scope, fact, onDone }: { scope: Scope; fact: Fact; onDone: () => void }) {
  const words = useWords();
  const { writes } = useRights();
  const [open, setOpen] = useState<'end' | 'correct' | null>(null);
  const [at, setAt] = useState(() => toInput(new Date().toISOString(), true));
  if (!writes || fact.superseded_at) return null;
  const end = async () => {
    const params = { path: { fact_id: fact.id } };
    await take(api.PATCH('/v1/facts/{fact_id}', { params, body: { ...scope, invalid_at: toInstant(at) ?? '' } }));
    onDone();
  };
  return (
    <p className="actions">
      <button type="button" onClick={() => setOpen('correct')}>
        {words.knowledge.correct} …
      </button>
      <button type="button" onClick={() => setOpen('end')}>
        {words.knowledge.end} …
      </button>
      {open === 'end' && (
        <Confirm
          title={words.knowledge.endTitle}
          action={words.knowledge.end}
          disabled={toInstant(at) === undefined}
          onClose={() => setOpen(null)}
          onConfirm={end}
        >
          <p>
            <bdi>{fact.text}</bdi>
          </p>
          <p className="soft">{words.knowledge.endSays}</p>
          <label className="field">
            <span>{words.knowledge.endAt}</span>
            <input type="datetime-local" step={1} value={at} required onChange={(event) => setAt(event.target.value)} />
          </label>
        </Confirm>
      )}
      {open === 'correct' && <CorrectDialog scope={scope} fact={fact} onClose={() => setOpen(null)} onDone={onDone} />}
    </p>
  );
}
