/** What models were asked: tokens by day and step, and the sums. */
import { useQuery } from '@tanstack/react-query';
import { api, type Schemas, take } from '../../api/client';
import { fillDays } from '../../parts/days';
import { useFilters } from '../../parts/filters';
import { count, short } from '../../parts/format';
import { namesOf, stack } from '../../parts/stacks';
import { Answer, Empty } from '../../parts/states';
import { useLanguage, useWords } from '../../words';

type Sum = Schemas['CostRow'];
const PERIODS = [7, 14, 30, 90];
const HUES = ['meaning', 'words', 'who-family', 'time-family', 'form', 'against'];

export function Cost() {
  const words = useWords();
  const language = useLanguage();
  const [filters, change] = useFilters();
  const days = PERIODS.find((each) => String(each) === filters.get('days')) ?? 14;
  const ledger = useQuery({
    queryKey: ['ledger', days],
    queryFn: ({ signal }) => take(api.GET('/v1/ledger', { params: { query: { days } }, signal })),
  });
  return (
    <section className="card cost">
      <header className="between">
        <h2>{words.jobs.cost}</h2>
        <div className="chips">
          {PERIODS.map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={each === days}
              onClick={() => change({ days: each === 14 ? null : String(each) })}
            >
              {words.jobs.days(each)}
            </button>
          ))}
        </div>
      </header>
      <Answer query={ledger}>
        {({ sums, budget }) => (
          <>
            {budget && budget.limit !== null && (
              <p>{words.home.budget(short(budget.used, language), short(budget.limit, language))}</p>
            )}
            {sums.length === 0 ? (
              <Empty>{words.jobs.noCost}</Empty>
            ) : (
              <>
                <Columns sums={sums} days={days} />
                <Sums sums={sums} />
              </>
            )}
          </>
        )}
      </Answer>
    </section>
  );
}

function Columns({ sums, days }: { sums: Sum[]; days: number }) {
  const words = useWords();
  const language = useLanguage();
  const amounts = sums.map((sum) => ({
    day: sum.day,
    name: sum.step,
    value: sum.prompt_tokens + sum.completion_tokens,
  }));
  const names = namesOf(amounts);
  const stacks = stack(
    amounts,
    fillDays([], new Date().toISOString().slice(0, 10), days).map((column) => column.day),
  );
  const most = Math.max(1, ...stacks.map((each) => each.total));
  const hue = (name: string) => HUES[names.indexOf(name) % HUES.length] ?? 'form';
  const total = stacks.reduce((sum, each) => sum + each.total, 0);
  if (total === 0) return null;
  return (
    <>
      <svg
        className="days"
        viewBox={`0 0 ${days} 20`}
        preserveAspectRatio="none"
        role="img"
        aria-label={words.home.tokens(short(total, language))}
      >
        {stacks.map(({ day, parts }, place) =>
          parts.map(({ name, from, value }) => (
            <rect
              key={`${day} ${name}`}
              className={hue(name)}
              x={place + 0.1}
              width={0.8}
              y={20 - ((from + value) / most) * 20}
              height={(value / most) * 20}
            >
              <title>{`${day} ${name}: ${count(value, language)}`}</title>
            </rect>
          )),
        )}
      </svg>
      <ul className="legend">
        {names.map((name) => (
          <li key={name}>
            <i className={hue(name)} aria-hidden="true" />
            {name}
          </li>
        ))}
      </ul>
    </>
  );
}

function Sums({ sums }: { sums: Sum[] }) {
  const words = useWords();
  const language = useLanguage();
  const rows = new Map<string, Sum>();
  for (const sum of sums) {
    const key = JSON.stringify([sum.step, sum.model]);
    const before = rows.get(key);
    rows.set(key, before ? add(before, sum) : sum);
  }
  const columns = ['calls', 'failed', 'prompt_tokens', 'completion_tokens'] as const;
  const heads = [words.jobs.calls, words.jobs.failedCalls, words.jobs.prompt, words.jobs.completion];
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{words.jobs.step}</th>
          <th scope="col">{words.jobs.model}</th>
          {heads.map((head) => (
            <th key={head} scope="col" className="number">
              {head}
            </th>
          ))}
          <th scope="col" className="number">
            {words.jobs.price}
          </th>
        </tr>
      </thead>
      <tbody>
        {[...rows].map(([key, row]) => (
          <tr key={key}>
            <th scope="row">{row.step}</th>
            <td>{row.model || words.jobs.noModel}</td>
            {columns.map((column) => (
              <td key={column} className="number">
                {count(row[column], language)}
              </td>
            ))}
            <td className="number">{row.price === null ? '–' : row.price.toFixed(4)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const add = (one: Sum, other: Sum): Sum => ({
  ...one,
  calls: one.calls + other.calls,
  failed: one.failed + other.failed,
  prompt_tokens: one.prompt_tokens + other.prompt_tokens,
  completion_tokens: one.completion_tokens + other.completion_tokens,
  price: one.price === null && other.price === null ? null : (one.price ?? 0) + (other.price ?? 0),
});
