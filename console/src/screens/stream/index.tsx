/** The memory stream: recency, similarity and importance of every memory, and the thoughts that grew from it. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, type Schemas, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { Detail } from '../../parts/detail';
import { useFilters } from '../../parts/filters';
import { Head } from '../../parts/frame';
import { Content, Kind } from '../../parts/memory';
import { Answer, Empty } from '../../parts/states';
import { useWords } from '../../words';
import { Scatter } from './scatter';
import { Thoughts } from './thoughts';

const FACTORS = ['recency', 'similarity', 'importance'] as const;
const USUAL = { recency: 1, similarity: 1, importance: 1 };
const MOST = 200;

export default function Stream({ scope }: { scope: Scope }) {
  const words = useWords();
  const [filters, change] = useFilters();
  const memory = filters.get('memory');
  const open = (id: string | null) => change({ memory: id });
  return (
    <div className="stream">
      <Head title={words.stream.title} says={words.stream.says} />
      <Asked />
      <div className="stream-columns">
        <Ranked scope={scope} chosen={memory} onOpen={open} />
        <Thoughts scope={scope} onOpen={open} />
      </div>
      {memory && (
        <div className="drawer">
          <Detail key={memory} scope={scope} id={memory} onOpen={open} onClose={() => open(null)} />
        </div>
      )}
    </div>
  );
}

/** The focal point, and how much each factor weighs. */
function Asked() {
  const words = useWords();
  const [filters, change] = useFilters();
  const [text, setText] = useState(filters.get('q') ?? '');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change({ q: text.trim(), memory: null });
  };
  return (
    <form className="bar" onSubmit={submit}>
      <label className="field grow">
        <span>{words.stream.cue}</span>
        <input type="search" dir="auto" value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      {FACTORS.map((factor) => {
        const value = filters.get(factor) ?? String(USUAL[factor]);
        return (
          <label key={factor} className="field">
            <span>
              {words.stream.factors[factor]} <b>{value}</b>
            </span>
            <input
              type="range"
              min={0}
              max={3}
              step={0.25}
              value={value}
              onChange={(event) =>
                change({ [factor]: Number(event.target.value) === USUAL[factor] ? null : event.target.value })
              }
            />
          </label>
        );
      })}
      <button type="submit" className="primary">
        {words.ask.recall}
      </button>
    </form>
  );
}

type RankedProps = { scope: Scope; chosen: string | null; onOpen: (id: string) => void };

function Ranked({ scope, chosen, onOpen }: RankedProps) {
  const words = useWords();
  const [filters] = useFilters();
  const text = filters.get('q') ?? '';
  const gains = Object.fromEntries(FACTORS.map((factor) => [factor, Number(filters.get(factor) ?? USUAL[factor])]));
  const found = useQuery({
    queryKey: ['stream', scope, text, gains],
    enabled: text !== '',
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => {
      const body = { ...scope, ...gains, text, channels: ['stream'], limit: MOST, touch: false, keep: false };
      return take(api.POST('/v1/recall', { body, signal }));
    },
  });
  if (text === '') return <Empty>{words.stream.start}</Empty>;
  return (
    <Answer query={found} lines={6}>
      {({ hits }) =>
        hits.length === 0 ? (
          <Empty>{words.ask.noHits}</Empty>
        ) : (
          <section className="known" aria-busy={found.isFetching}>
            <Scatter hits={hits} chosen={chosen} onOpen={onOpen} />
            <Best hits={hits.slice(0, 12)} onOpen={onOpen} />
          </section>
        )
      }
    </Answer>
  );
}

/** The first hits as a table, with their three factors. */
function Best({ hits, onOpen }: { hits: Schemas['Hit'][]; onOpen: (id: string) => void }) {
  const words = useWords();
  return (
    <section className="card">
      <table className="best">
        <thead>
          <tr>
            <th scope="col">{words.frame.mind}</th>
            {FACTORS.map((factor) => (
              <th key={factor} scope="col" className="number">
                {words.stream.factors[factor]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {hits.map(({ memory, channels }) => (
            <tr key={memory.id}>
              <th scope="row">
                <button type="button" className="plain" onClick={() => onOpen(memory.id)}>
                  <Kind kind={memory.kind} />{' '}
                  <span className="lines">
                    <Content memory={memory} most={200} />
                  </span>
                </button>
              </th>
              {FACTORS.map((factor) => (
                <td key={factor} className="number">
                  {channels.stream?.factors?.[factor].toFixed(2) ?? '–'}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
