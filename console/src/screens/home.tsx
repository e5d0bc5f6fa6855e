/** Is all well, and whose memory do I look at? */
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { api, type Schemas, take } from '../api/client';
import { useDays } from '../api/days';
import { useRights } from '../api/me';
import { scopePath } from '../parts/address';
import { fillDays } from '../parts/days';
import { useFilters } from '../parts/filters';
import { ago, count, short } from '../parts/format';
import { Head } from '../parts/frame';
import { SAMPLE } from '../parts/sample';
import { Spark } from '../parts/spark';
import { Answer, Empty } from '../parts/states';
import { useLanguage, useWords } from '../words';

const ORDERS = ['recent', 'size', 'name'] as const;
/** Of so many scopes the days are drawn: each is a request. */
const DRAWN = 12;

export function Home() {
  const words = useWords();
  const { bound, writes } = useRights();
  return (
    <div className="home">
      <Head title={words.home.title} says={words.home.says} />
      {!bound && (
        <div className="cards">
          <Health />
          <Jobs />
          <Cost />
        </div>
      )}
      <Scopes />
      {writes && !bound && (
        <p className="try-line">
          <b>{words.home.tryTitle}</b> <span className="soft">{words.home.trySays}</span>{' '}
          <Link href={scopePath(SAMPLE, 'try')}>{words.home.tryOpen} →</Link>
        </p>
      )}
    </div>
  );
}

const useStatus = () =>
  useQuery({ queryKey: ['status'], queryFn: () => take(api.GET('/v1/status')), refetchInterval: 10_000 });

function Health() {
  const words = useWords();
  const status = useStatus();
  return (
    <section className="card">
      <h2>{words.home.health}</h2>
      <Answer query={status} lines={3}>
        {(data) => (
          <dl className="facts-of">
            <dt>{words.home.service}</dt>
            <dd>
              <i className="dot good" aria-hidden="true" />
              {words.home.ready} · {data.version}
            </dd>
            <dt>{words.home.embedder}</dt>
            <dd>
              <i className={data.embedder.active ? 'dot good' : 'dot bad'} aria-hidden="true" />
              {data.embedder.model || words.home.byWords}
              {data.by_words && <small className="soft"> {data.by_words}</small>}
            </dd>
            <dt>{words.home.chatModel}</dt>
            <dd>{data.chat_model || words.home.noChatModel}</dd>
          </dl>
        )}
      </Answer>
    </section>
  );
}

function Jobs() {
  const words = useWords();
  const status = useStatus();
  return (
    <section className="card">
      <h2>{words.home.jobs}</h2>
      <Answer query={status} lines={3}>
        {(data) => {
          const busy = data.jobs.filter((job) => job.waiting + job.running + job.failed > 0);
          if (busy.length === 0) return <p className="soft">{words.home.nothingToDo}</p>;
          return (
            <ul>
              {busy.map((job) => (
                <li key={job.task}>
                  <b>{job.task}</b> {words.home.waiting(job.waiting + job.running)}
                  {job.failed > 0 && <span className="badge bad">{words.home.failed(job.failed)}</span>}
                </li>
              ))}
            </ul>
          );
        }}
      </Answer>
    </section>
  );
}

function Cost() {
  const words = useWords();
  const language = useLanguage();
  const ledger = useQuery({
    queryKey: ['ledger', 14],
    queryFn: () => take(api.GET('/v1/ledger', { params: { query: { days: 14 } } })),
  });
  return (
    <section className="card">
      <h2>{words.home.cost}</h2>
      <Answer query={ledger} lines={3}>
        {({ sums, budget }) => {
          const days = sums.map((sum) => ({
            day: sum.day,
            kind: sum.step,
            memories: sum.prompt_tokens + sum.completion_tokens,
          }));
          const total = days.reduce((all, each) => all + each.memories, 0);
          const columns = fillDays(days, new Date().toISOString().slice(0, 10), 14);
          return (
            <>
              <Spark values={columns.map((column) => column.total)} says={words.home.tokens(short(total, language))} />
              <p>{words.home.tokens(short(total, language))}</p>
              {budget && budget.limit !== null && (
                <p className="soft small">
                  {words.home.budget(short(budget.used, language), short(budget.limit, language))}
                </p>
              )}
            </>
          );
        }}
      </Answer>
    </section>
  );
}

function Scopes() {
  const words = useWords();
  const [filters, change] = useFilters();
  const search = filters.get('search') ?? '';
  const order = ORDERS.find((each) => each === filters.get('order')) ?? 'recent';
  const pages = useInfiniteQuery({
    queryKey: ['scopes', search, order],
    initialPageParam: '',
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) => {
      const query = { order, limit: 50, ...(search && { search }), ...(pageParam && { cursor: pageParam }) };
      return take(api.GET('/v1/scopes', { params: { query }, signal }));
    },
    getNextPageParam: (last) => last.next_cursor ?? undefined,
  });
  return (
    <section>
      <div className="bar">
        <label className="field grow">
          <span>{words.home.find}</span>
          <input type="search" value={search} onChange={(event) => change({ search: event.target.value })} />
        </label>
        <label className="field">
          <span>{words.home.order}</span>
          <select value={order} onChange={(event) => change({ order: event.target.value })}>
            {ORDERS.map((each) => (
              <option key={each} value={each}>
                {words.home.orders[each]}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Answer query={pages}>
        {(data) => {
          const rows = data.pages.flatMap((page) => page.scopes);
          if (rows.length === 0)
            return (
              <Empty call={search ? '' : 'recollect remember --agent ada --user li "Li is allergic to peanuts."'}>
                {search ? words.home.noSuchScope : words.home.noScopes}
              </Empty>
            );
          return <Table rows={rows} />;
        }}
      </Answer>
      {pages.hasNextPage && (
        <button type="button" onClick={() => void pages.fetchNextPage()} disabled={pages.isFetchingNextPage}>
          {words.states.more}
        </button>
      )}
    </section>
  );
}

type Row = Schemas['ScopeInfo'];

function Table({ rows }: { rows: Row[] }) {
  const words = useWords();
  const language = useLanguage();
  const now = Date.now();
  return (
    <table className="scopes">
      <thead>
        <tr>
          <th scope="col">{words.home.agent}</th>
          <th scope="col">{words.home.user}</th>
          <th scope="col" className="number">
            {words.home.memories}
          </th>
          <th scope="col">{words.home.lastWritten}</th>
          <th scope="col">{words.home.days}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row, place) => (
          <tr key={JSON.stringify([row.agent, row.user])}>
            <td>
              <Link href={scopePath(row, 'mind')}>
                <bdi>{row.agent}</bdi>
              </Link>
            </td>
            <td>
              <bdi>{row.user || words.frame.noUser}</bdi>
            </td>
            <td className="number">{count(row.memories, language)}</td>
            <td>{row.last_written_at ? ago(row.last_written_at, now, language) : '–'}</td>
            <td>{place < DRAWN && <Days row={row} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Days({ row }: { row: Row }) {
  const words = useWords();
  const columns = useDays(row, 30);
  if (!columns) return null;
  const total = columns.reduce((sum, column) => sum + column.total, 0);
  return <Spark values={columns.map((column) => column.total)} says={words.home.inDays(total, 30)} />;
}
