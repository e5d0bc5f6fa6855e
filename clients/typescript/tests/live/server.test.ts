/** Against a real server, whose address and key stand in the environment: see tests/doors/test_typescript.py. */
import { expect, it } from 'vitest';
import { type Change, connect, type Mind, Problem, take } from '../../src/index.js';

declare const process: { env: Record<string, string | undefined> };
const url = process.env.RECOLLECT_URL ?? '';
const recollect = connect({ url, key: process.env.RECOLLECT_KEY ?? '' });
const mind = recollect.mind('ts', crypto.randomUUID());

it('remembers, recalls with reasons, and forgets', async () => {
  const [stored] = await mind.remember('Li is allergic to peanuts.');
  const found = await mind.recall('What must Li not eat?');
  expect(found.hits[0]?.memory.content).toBe('Li is allergic to peanuts.');
  const shares = Object.values(found.hits[0]?.channels ?? {}).map((channel) => channel.share);
  expect(Math.max(...shares)).toBeGreaterThan(0);
  const ids = [stored?.id ?? ''];
  expect(await mind.forget(ids, { dryRun: true })).toEqual(ids);
  expect(await mind.forget(ids)).toEqual(ids);
  expect((await mind.recall('What must Li not eat?')).hits).toEqual([]);
});

it('stores once what is sent twice under one key', async () => {
  const idempotencyKey = crypto.randomUUID();
  const first = await mind.remember('It is stored once.', { idempotencyKey });
  expect(await mind.remember('It is stored once.', { idempotencyKey })).toEqual(first);
});

it('recognizes what a session repeats', async () => {
  const said = (name: string, content = name) => ({ role: 'user' as const, content, external_id: name });
  const [first] = await mind.append('session', [said('e1')]);
  const again = await mind.append('session', [said('e1'), said('e2')]);
  expect(again.map((each) => each.known)).toEqual([true, false]);
  expect(again[0]?.id).toBe(first?.id);
  await expect(mind.append('session', [said('e1', 'other')])).rejects.toThrow('e1 (content)');
});

it('forgets everything in a scope', async () => {
  const other = recollect.mind('ts', crypto.randomUUID());
  await other.remember('It goes.');
  expect((await other.forgetEverything({ dryRun: true })).id).toBeNull();
  expect((await other.forgetEverything()).removed).toMatchObject({ memories: 1 });
  expect((await other.recall('It goes.')).hits).toEqual([]);
});

it('goes through all pages', async () => {
  const other = recollect.mind('ts', crypto.randomUUID());
  await other.remember(Array.from({ length: 25 }, (_, n) => ({ content: `Note ${n}` })));
  const seen = new Set<string>();
  for await (const memory of other.memories({ limit: 10 })) seen.add(memory.content);
  expect(seen.size).toBe(25);
});

it('builds a prompt within a budget', async () => {
  await mind.append('dinner', [{ role: 'user', content: 'Shall we cook?' }]);
  const context = await mind.context('dinner', 'What do we cook?', { budget: 500 });
  expect(context.messages.at(-1)).toMatchObject({ role: 'user', content: 'What do we cook?' });
  expect(context.spending.total).toBeLessThanOrEqual(500);
});

it('throws what is refused as a problem', async () => {
  const foreign = connect({ url, key: 'rec_wrong' });
  await expect(foreign.mind('ts').recall('x')).rejects.toMatchObject({ status: 401, code: 'unauthenticated' });
  const path = { memory_id: '00000000-0000-7000-8000-000000000000' };
  const missing = take(recollect.api.GET('/v1/memories/{memory_id}', { params: { path, query: mind.scope } }));
  const problem = await missing.catch((error: unknown) => error);
  expect(problem).toBeInstanceOf(Problem);
  expect(problem).toMatchObject({ status: 404, code: 'not_found' });
  expect((problem as Problem).requestId).not.toBe('');
  await expect(mind.memories({ limit: 0 }).next()).rejects.toMatchObject({ errors: [{ field: 'query.limit' }] });
});

it('follows what another writes', async () => {
  const followed = recollect.mind('ts', crypto.randomUUID());
  await followed.remember('Before.');
  const stop = new AbortController();
  const { first, began } = begin(followed, stop.signal);
  await began;
  const [stored] = await followed.remember('While it is followed.');
  const { value } = await first;
  expect(value?.operation).toBe('stored');
  expect(value?.ids).toContain(stored?.id);
  stop.abort();
});

/** Begin to follow; the first change, and the moment from which none is missed. */
function begin(followed: Mind, signal: AbortSignal) {
  let first: Promise<IteratorResult<Change>> | undefined;
  const began = new Promise<void>((resolve) => {
    first = followed.changes({ signal, onBegan: () => resolve() }).next();
  });
  return { first: first as Promise<IteratorResult<Change>>, began };
}
