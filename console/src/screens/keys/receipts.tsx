/** What was erased and purged, in numbers, to print. */
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api, take } from '../../api/client';
import { count, moment } from '../../parts/format';
import { Answer } from '../../parts/states';
import { useLanguage, useWords } from '../../words';
import { EraseUser } from './erase';

const MOST = 100;

export function Erasures() {
  const words = useWords();
  const [asked, setAsked] = useState(false);
  const receipts = useQuery({
    queryKey: ['erasures'],
    queryFn: async ({ signal }) =>
      (await take(api.GET('/v1/erasures', { params: { query: { limit: MOST } }, signal }))).erasures,
  });
  return (
    <section className="card receipts">
      <Title title={words.keys.receipts}>
        <button type="button" onClick={() => setAsked(true)}>
          {words.keys.erase} …
        </button>
      </Title>
      {asked && <EraseUser onClose={() => setAsked(false)} />}
      <Answer query={receipts} lines={2}>
        {(all) =>
          all.length === 0 ? (
            <p className="soft">{words.keys.noReceipts}</p>
          ) : (
            <Table
              head={words.keys.erased}
              receipts={all.map((each) => ({ ...each, of: [each.agent, each.user].filter(Boolean).join(' / ') }))}
            />
          )
        }
      </Answer>
    </section>
  );
}

export function Purges() {
  const words = useWords();
  const receipts = useQuery({
    queryKey: ['receipts'],
    queryFn: async ({ signal }) =>
      (await take(api.GET('/v1/receipts', { params: { query: { limit: MOST } }, signal }))).receipts,
  });
  return (
    <section className="card receipts">
      <Title title={words.keys.purges} />
      <Answer query={receipts} lines={2}>
        {(all) =>
          all.length === 0 ? (
            <p className="soft">{words.keys.noPurges}</p>
          ) : (
            <Table
              head={words.keys.conversation}
              receipts={all.map((each) => ({ ...each, of: `${each.agent} / ${each.user} / ${each.conversation}` }))}
            />
          )
        }
      </Answer>
    </section>
  );
}

function Title({ title, children }: { title: string; children?: ReactNode }) {
  const words = useWords();
  return (
    <header className="between">
      <h2>{title}</h2>
      <span className="actions">
        {children}
        <button type="button" className="quiet" onClick={() => print()}>
          {words.keys.print}
        </button>
      </span>
    </header>
  );
}

type Receipt = {
  id: string | null;
  of: string;
  asked_by: string;
  begun_at: string | null;
  finished_at: string | null;
  removed: Record<string, number>;
};

function Table({ head, receipts }: { head: string; receipts: Receipt[] }) {
  const words = useWords();
  const language = useLanguage();
  return (
    <table>
      <thead>
        <tr>
          {[head, words.keys.asked, words.keys.begun, words.keys.finished].map((each) => (
            <th key={each} scope="col">
              {each}
            </th>
          ))}
          <th scope="col" className="number">
            {words.keys.rows}
          </th>
        </tr>
      </thead>
      <tbody>
        {receipts.map((each) => (
          <tr key={each.id}>
            <th scope="row">
              <bdi>{each.of}</bdi>
            </th>
            <td>
              <bdi>{each.asked_by}</bdi>
            </td>
            <td>{moment(each.begun_at)}</td>
            <td>{each.finished_at ? moment(each.finished_at) : words.keys.underWay}</td>
            <td
              className="number"
              title={Object.entries(each.removed)
                .map((pair) => pair.join(' '))
                .join(', ')}
            >
              {count(
                Object.values(each.removed).reduce((sum, rows) => sum + rows, 0),
                language,
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
