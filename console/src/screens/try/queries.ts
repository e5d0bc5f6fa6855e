/** What Try asks: a turn with the model, or without one all that a program would have for its own. */
import { useQuery } from '@tanstack/react-query';
import { api, recollect, type Schemas, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { SAMPLE, sampleFacts, sampleMemories, sampleMessages } from '../../parts/sample';

export type Prompt = Schemas['Context'];
export type Turn = {
  id: string;
  text: string;
  /** What the model answered; null without a model. */
  answer: string | null;
  prompt: Prompt;
  stored: string[];
};
const BUDGET = 2000;

export const useStatus = () => useQuery({ queryKey: ['status'], queryFn: () => take(api.GET('/v1/status')) });

/** Say something: the model answers if there is one; what is said is stored if the key may write. */
export async function say(
  scope: Scope,
  conversation: string,
  text: string,
  may: { model: boolean; writes: boolean },
): Promise<Turn> {
  const id = crypto.randomUUID();
  if (may.model && may.writes) {
    const body = { ...scope, conversation, text, budget: BUDGET };
    const reply = await take(api.POST('/v1/chat', { body }));
    const stored = reply.appended.map((each) => each.id);
    return { id, text, answer: reply.answer, prompt: reply.context, stored };
  }
  const body = { ...scope, conversation, text, budget: BUDGET, touch: false, keep: false, explain: true };
  const prompt = await take(api.POST('/v1/context', { body }));
  const mind = recollect.mind(scope.agent, scope.user);
  const appended = may.writes ? await mind.append(conversation, [{ role: 'user', content: text }]) : [];
  return { id, text, answer: null, prompt, stored: appended.map((each) => each.id) };
}

/** What was stored since a turn: the turn itself, and a moment later what was learned from it. Ids tell the order. */
export const useLearned = (scope: Scope, turn: Turn) =>
  useQuery({
    queryKey: ['learned', scope, turn.id],
    queryFn: async ({ signal }) => {
      const query = { ...scope, order: 'newest' as const, limit: 30 };
      const { memories } = await take(api.GET('/v1/memories', { params: { query }, signal }));
      const first = [...turn.stored].sort()[0];
      return first === undefined ? [] : memories.filter((memory) => memory.id >= first);
    },
  });

export const useSampleSize = (scope: Scope) =>
  useQuery({
    queryKey: ['overview', scope],
    queryFn: async ({ signal }) => (await take(api.GET('/v1/overview', { params: { query: scope }, signal }))).memories,
  });

export async function fillSample(): Promise<void> {
  const mind = recollect.mind(SAMPLE.agent, SAMPLE.user);
  for (const [conversation, messages] of sampleMessages()) await mind.append(conversation, messages);
  await mind.remember(sampleMemories());
  await take(api.POST('/v1/facts', { body: { ...SAMPLE, facts: sampleFacts() } }));
}

/** Remove all of the sample: its conversations with what was said, then whatever else is remembered. */
export async function removeSample(): Promise<void> {
  for (const state of ['active', 'archived', 'deleted'] as const) {
    const { conversations } = await take(
      api.GET('/v1/conversations', { params: { query: { ...SAMPLE, state, limit: 200 } } }),
    );
    for (const { id } of conversations) {
      const params = { path: { conversation: id } };
      await take(api.POST('/v1/conversations/{conversation}/purge', { params, body: SAMPLE }));
    }
  }
  const mind = recollect.mind(SAMPLE.agent, SAMPLE.user);
  for (const state of ['current', 'past', 'faded', 'withheld'] as const) {
    for (let rounds = 0; rounds < 100; rounds += 1) {
      const query = { ...SAMPLE, state, limit: 100 };
      const { memories } = await take(api.GET('/v1/memories', { params: { query } }));
      if (memories.length === 0) break;
      await mind.forget(memories.map((memory) => memory.id));
    }
  }
}
