import { expect, it } from 'vitest';
import { type Change, connect, Problem } from '../../src/index.js';

const change = (number: number) => ({
  cursor: `r.${number}`,
  number,
  at: '2026-01-01T00:00:00Z',
  operation: 'stored',
  ids: [],
});
const event = (name: string, number: number) =>
  `id: r.${number}\nevent: ${name}\ndata: ${JSON.stringify(change(number))}\n\n`;

/** A server that sends these streams one after the other, and what it was asked. */
function streaming(...streams: (string | Error | Response)[]) {
  const asked: string[] = [];
  const recollect = connect({
    url: 'http://server.test',
    key: 'rec_k',
    fetch: async (request) => {
      asked.push(new URL(request.url).searchParams.get('since') ?? '');
      const next = streams[asked.length - 1];
      if (next instanceof Response) return next;
      if (typeof next !== 'string') throw next ?? new Error('asked too often');
      return new Response(next, { headers: { 'content-type': 'text/event-stream' } });
    },
  });
  return { mind: recollect.mind('ada', 'li'), asked };
}

const pause = async () => undefined;

it('follows over dropped connections, each change once and in order', async () => {
  const { mind, asked } = streaming(
    `${event('began', 40)}${event('change', 41)}: heartbeat\n\n`,
    new TypeError('network'),
    event('began', 41) + event('change', 42) + event('change', 43),
  );
  const stop = new AbortController();
  const seen: Change[] = [];
  for await (const each of mind.changes({ signal: stop.signal, pause })) {
    seen.push(each);
    if (seen.length === 3) stop.abort();
  }
  expect(seen.map(({ number }) => number)).toEqual([41, 42, 43]);
  expect(asked.slice(0, 3)).toEqual(['', 'r.41', 'r.41']);
});

it('throws what was refused, and what ends it on the way', async () => {
  const gone = new Response(JSON.stringify({ status: 410, code: 'cursor_expired', detail: 'Read anew.' }), {
    status: 410,
  });
  const { mind } = streaming(gone);
  await expect(mind.changes({ since: 'old.1', pause }).next()).rejects.toMatchObject({ code: 'cursor_expired' });
  const ended = streaming('event: problem\ndata: {"status": 401, "code": "unauthenticated", "detail": "Revoked."}\n\n');
  const error = await ended.mind
    .changes({ pause })
    .next()
    .catch((problem: unknown) => problem);
  expect(error).toBeInstanceOf(Problem);
  expect(error).toMatchObject({ status: 401 });
});
