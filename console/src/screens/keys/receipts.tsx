/** What was erased, in numbers, to print. */
import { useQuery } from '@tanstack/react-query';
import { api, type Schemas, take } from '../../api/client';
import { count, moment } from '../../parts/format';
import { Answer } from '../../parts/states';
import { useLanguage, useWords } from '../../words';

export function Receipts() {
  const words = useWords();
  const receipts = useQuery({
    queryKey: ['erasures'],
    queryFn: async ({ signal }) =>
      (await take(api.GET('/v1/erasures', { params: { query: { limit: 100 } }, signal }))).erasures,
  });
  return (
    <section className="card receipts">
      <header className="between">
        <h2>{words.keys.receipts}</h2>
        <button type="button" className="quiet" onClick={() => print()}>
          {words.keys.print}
        </button>
      </header>
      <Answer query={receipts} lines={2}>
        {(all) => (all.length === 0 ? <p className="soft">{words.keys.noReceipts}</p> : <Table receipts={all} />)}
      </Answer>
    </section>
  );
}

function Table({ receipts }: { receipts: Schemas['UserErasure'][] }) {
  const words = useWords();
  const language = useLanguage();
  return (
    <table>
      <thead>
        <tr>
          {[words.keys.erased, words.keys.asked, words.keys.begun, words.keys.finished].map((head) => (
            <th key={head} scope="col">
              {head}
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
              <bdi>{each.user}</bdi>
            </th>
            <td>
              <bdi>{each.asked_by}</bdi>
            </td>
            <td>{moment(each.begun_at)}</td>
            <td>{each.finished_at ? moment(each.finished_at) : words.keys.underWay}</td>
            <td className="number">
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
