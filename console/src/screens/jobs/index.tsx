/** What is done later, how far it is, and what models cost. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { api, type Schemas, take } from '../../api/client';
import { useRights } from '../../api/me';
import { scopePath } from '../../parts/address';
import { useFilters } from '../../parts/filters';
import { ago } from '../../parts/format';
import { Head } from '../../parts/frame';
import { Answer, Empty, Failure } from '../../parts/states';
import { useLanguage, useWords } from '../../words';
import { Cost } from './cost';

const STATES = ['waiting', 'running', 'failed'] as const;
type Job = Schemas['Job'];

export default function Jobs() {
  const words = useWords();
  const [filters, change] = useFilters();
  const state = STATES.find((each) => each === filters.get('state'));
  const jobs = useQuery({
    queryKey: ['jobs', state],
    refetchInterval: 5000,
    queryFn: ({ signal }) =>
      take(api.GET('/v1/jobs', { params: { query: { limit: 100, ...(state && { state }) } }, signal })),
  });
  return (
    <div className="jobs">
      <Head title={words.jobs.title} says={words.jobs.says}>
        <label className="field">
          <span>{words.jobs.state}</span>
          <select value={state ?? ''} onChange={(event) => change({ state: event.target.value })}>
            <option value="">{words.jobs.all}</option>
            {STATES.map((each) => (
              <option key={each} value={each}>
                {words.jobs.states[each]}
              </option>
            ))}
          </select>
        </label>
      </Head>
      <section className="card">
        <Answer query={jobs}>
          {(data) => (data.jobs.length === 0 ? <Empty>{words.jobs.none}</Empty> : <Table jobs={data.jobs} />)}
        </Answer>
      </section>
      <Cost />
    </div>
  );
}

function Table({ jobs }: { jobs: Job[] }) {
  const words = useWords();
  const language = useLanguage();
  const now = Date.now();
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{words.jobs.task}</th>
          <th scope="col">{words.jobs.scope}</th>
          <th scope="col">{words.jobs.state}</th>
          <th scope="col" className="number">
            {words.jobs.attempts}
          </th>
          <th scope="col">{words.jobs.since}</th>
          <th scope="col">{words.jobs.reason}</th>
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <tr key={job.id}>
            <th scope="row">{job.task}</th>
            <td>
              {job.agent ? (
                <Link href={scopePath(job, 'mind')}>
                  <bdi>{job.user ? `${job.agent} / ${job.user}` : job.agent}</bdi>
                </Link>
              ) : (
                '–'
              )}
            </td>
            <td>
              <span className={job.state === 'failed' ? 'badge bad' : 'badge'}>{words.jobs.states[job.state]}</span>
            </td>
            <td className="number">{job.attempts}</td>
            <td>{ago(job.deferred_at, now, language)}</td>
            <td>
              <bdi>{job.reason}</bdi> {job.state === 'failed' && <Retry job={job} />}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Retry({ job }: { job: Job }) {
  const words = useWords();
  const { administers } = useRights();
  const queries = useQueryClient();
  const [error, setError] = useState<Error | null>(null);
  if (!administers) return null;
  const retry = async () => {
    try {
      await take(api.POST('/v1/jobs/{job_id}/retry', { params: { path: { job_id: job.id } } }));
      await queries.invalidateQueries({ queryKey: ['jobs'] });
    } catch (failure) {
      setError(failure as Error);
    }
  };
  return error ? (
    <Failure error={error} />
  ) : (
    <button type="button" onClick={() => void retry()}>
      {words.jobs.retry}
    </button>
  );
}
