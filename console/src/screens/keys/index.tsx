/** Who may do what, and what was erased. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type Schemas, take } from '../../api/client';
import { Confirm } from '../../parts/dialog';
import { day, moment } from '../../parts/format';
import { Head } from '../../parts/frame';
import { Answer } from '../../parts/states';
import { useWords } from '../../words';
import { MakeKey } from './make';
import { Erasures, Purges } from './receipts';

type Key = Schemas['ApiKey'];

export default function Keys() {
  const words = useWords();
  const [making, setMaking] = useState(false);
  const keys = useQuery({ queryKey: ['keys'], queryFn: ({ signal }) => take(api.GET('/v1/keys', { signal })) });
  return (
    <div className="keys">
      <Head title={words.keys.title} says={words.keys.says}>
        <button type="button" className="primary" onClick={() => setMaking(true)}>
          {words.keys.make} …
        </button>
      </Head>
      <section className="card">
        <Answer query={keys}>{(data) => <Table keys={data.keys} />}</Answer>
      </section>
      <Purges />
      <Erasures />
      {making && <MakeKey onClose={() => setMaking(false)} />}
    </div>
  );
}

function Table({ keys }: { keys: Key[] }) {
  const words = useWords();
  const heads = [
    words.keys.name,
    words.keys.rights,
    words.keys.trust,
    words.keys.boundTo,
    words.keys.made,
    words.keys.used,
    words.keys.expires,
    words.keys.state,
  ];
  return (
    <table>
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr key={key.id} className={key.revoked_at ? 'soft' : ''}>
            <th scope="row">
              <bdi>{key.name}</bdi> {key.parent && <span className="badge">{words.keys.child}</span>}
            </th>
            <td>{[...key.rights].sort().join(', ')}</td>
            <td>{key.trust}</td>
            <td>
              <bdi>
                {key.agent === null
                  ? words.keys.anything
                  : [key.agent, key.user].filter((each) => each !== null).join(' / ')}
              </bdi>
            </td>
            <td>{day(key.created_at)}</td>
            <td>{key.last_used_at ? day(key.last_used_at) : '–'}</td>
            <td>{key.expires_at ? moment(key.expires_at) : words.keys.never}</td>
            <td>
              <State of={key} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function State({ of: key }: { of: Key }) {
  const words = useWords();
  const queries = useQueryClient();
  const [asked, setAsked] = useState(false);
  if (key.revoked_at) return words.keys.revoked;
  if (key.expires_at && Date.parse(key.expires_at) < Date.now()) return words.keys.expired;
  const revoke = async () => {
    await take(api.DELETE('/v1/keys/{key_id}', { params: { path: { key_id: key.id } } }));
    await queries.invalidateQueries({ queryKey: ['keys'] });
  };
  return (
    <>
      <button type="button" onClick={() => setAsked(true)}>
        {words.keys.revoke} …
      </button>
      {asked && (
        <Confirm
          title={words.keys.revoke}
          action={words.keys.revoke}
          destroys
          typed={key.name}
          onClose={() => setAsked(false)}
          onConfirm={revoke}
        >
          <p>{words.keys.revokeSays}</p>
        </Confirm>
      )}
    </>
  );
}
