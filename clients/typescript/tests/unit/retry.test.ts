import { describe, expect, it } from 'vitest';
import { connect, Problem, take } from '../../src/index.js';
import { waitSeconds } from '../../src/retry.js';

type Step = Response | Error;
const problem = (status: number, code: string, headers = {}) =>
  new Response(JSON.stringify({ status, code, detail: `It is ${code}.`, errors: [] }), { status, headers });
const fine = (body: unknown, status = 200) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } });

/** A server that answers as it is told, and what it was asked. */
function scripted(...steps: Step[]) {
  const asked: Request[] = [];
  const waits: number[] = [];
  const recollect = connect({
    url: 'http://server.test/memory/',
    key: 'rec_k',
    pause: async (seconds) => void waits.push(seconds),
    fetch: async (request) => {
      asked.push(request.clone());
      const step = steps[asked.length - 1];
      if (step === undefined || step instanceof Error) throw step ?? new Error('asked too often');
      return step;
    },
  });
  return { recollect, asked, waits };
}

describe('a request', () => {
  it('is sent with the key, below the path of the proxy', async () => {
    const { recollect, asked } = scripted(fine({ hits: [], methods: {} }));
    await recollect.mind('ada', 'li').recall('nuts', { limit: 3 });
    expect(asked[0]?.url).toBe('http://server.test/memory/v1/recall');
    expect(asked[0]?.headers.get('authorization')).toBe('Bearer rec_k');
    expect(await asked[0]?.json()).toEqual({ agent: 'ada', user: 'li', text: 'nuts', limit: 3 });
  });

  it('is tried again under one idempotency key, and waits as long as it is asked to', async () => {
    const { recollect, asked, waits } = scripted(
      problem(503, 'busy', { 'retry-after': '3' }),
      new TypeError('network'),
      fine({ memories: [{ id: '1', state: 'stored' }] }, 201),
    );
    expect(await recollect.mind('ada').remember('It rains.')).toEqual([{ id: '1', state: 'stored' }]);
    const keys = asked.map((request) => request.headers.get('idempotency-key'));
    expect(keys[0]).toBeTruthy();
    expect(new Set(keys).size).toBe(1);
    expect(waits[0]).toBe(3);
  });

  it("keeps the caller's idempotency key", async () => {
    const { recollect, asked } = scripted(fine({ memories: [] }, 201));
    await recollect.mind('ada').remember('It rains.', { idempotencyKey: 'mine' });
    expect(asked[0]?.headers.get('idempotency-key')).toBe('mine');
  });

  it('is a problem with code and request id after the last attempt', async () => {
    const busy = () => problem(503, 'unavailable', { 'x-request-id': 'r7' });
    const { recollect, asked } = scripted(busy(), busy(), busy(), busy());
    const error = await recollect
      .mind('ada')
      .recall('x')
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(Problem);
    expect(error).toMatchObject({ status: 503, code: 'unavailable', requestId: 'r7', passing: true });
    expect(asked).toHaveLength(4);
  });

  it('is not repeated when it was refused', async () => {
    const { recollect, asked } = scripted(problem(422, 'invalid_input'));
    await expect(recollect.mind('ada').recall('x')).rejects.toMatchObject({ code: 'invalid_input', passing: false });
    expect(asked).toHaveLength(1);
  });

  it('that a model is paid for is sent once', async () => {
    const { recollect, asked } = scripted(new TypeError('network'));
    const body = { agent: 'ada', conversation: 'c', text: 'Hello' };
    await expect(take(recollect.api.POST('/v1/chat', { body }))).rejects.toMatchObject({ code: 'unreachable' });
    expect(asked).toHaveLength(1);
  });

  it('that makes a key is sent once, and a list of keys as often as it takes', async () => {
    const making = scripted(new TypeError('network'));
    const body = { name: 'a', rights: ['read' as const] };
    await expect(take(making.recollect.api.POST('/v1/keys', { body }))).rejects.toMatchObject({ code: 'unreachable' });
    const listing = scripted(new TypeError('network'), fine({ keys: [] }));
    expect(await take(listing.recollect.api.GET('/v1/keys'))).toEqual({ keys: [] });
  });

  it('that is aborted is not tried again', async () => {
    const stop = new AbortController();
    stop.abort();
    const { recollect, asked } = scripted(new DOMException('stopped', 'AbortError'));
    const query = { agent: 'ada' };
    const call = recollect.api.GET('/v1/overview', { params: { query }, signal: stop.signal });
    await expect(call).rejects.toMatchObject({ name: 'AbortError' });
    expect(asked.length).toBeLessThan(2);
  });
});

it('reads a problem out of any answer', async () => {
  const { recollect } = scripted(new Response('<html>gateway</html>', { status: 404 }));
  await expect(recollect.mind('ada').recall('x')).rejects.toMatchObject({ status: 404, code: 'error' });
});

it('waits longer with each attempt, and never beyond its bound', () => {
  expect([1, 2, 3].map((attempt) => waitSeconds(attempt, null, 1))).toEqual([0.2, 0.4, 0.8]);
  expect(waitSeconds(20, null, 1)).toBe(8);
  expect(waitSeconds(1, problem(503, 'busy', { 'retry-after': '900' }), 0)).toBe(8);
  expect(waitSeconds(1, problem(503, 'busy', { 'retry-after': 'tomorrow' }), 0)).toBe(0);
});

describe('the address of the server', () => {
  it('must begin with http:// or https://', () => {
    expect(() => connect({ url: '127.0.0.1:7077' })).toThrow('http://');
  });

  it('may end in /v1, as many were copied', () => {
    expect(connect({ url: 'http://server.test/memory/v1/' }).url).toBe('http://server.test/memory');
  });

  it('is named where nobody answers', async () => {
    const { recollect } = scripted();
    await expect(recollect.mind('ada').recall('nuts')).rejects.toThrow(
      'Cannot reach http://server.test. Is the server running? Start one with `recollect up`.',
    );
  });
});
