/** One scope: an agent, and the user whom it remembers. */
import { type Change, type FollowOptions, followChanges } from './changes.js';
import type { Recollect, Schemas } from './client.js';
import { take } from './client.js';
import { entries } from './pages.js';
import type { operations } from './schema.js';

type Without<T> = Omit<T, 'agent' | 'user'>;
export type NewMemory = Schemas['MemoryBody'];
export type NewMessage = Schemas['MessageBody'];
export type RecallOptions = Partial<Without<Schemas['RecallBody']>>;
export type ContextOptions = Partial<Omit<Without<Schemas['ContextBody']>, 'conversation' | 'text'>>;
export type MemoryFilter = Without<NonNullable<operations['list_memories']['parameters']['query']>>;
/** An idempotency key of one's own: a write that is sent again under it is stored once. */
export type Keyed = { idempotencyKey?: string };

export class Mind {
  readonly scope: { agent: string; user: string };

  constructor(
    readonly recollect: Recollect,
    agent: string,
    user: string,
  ) {
    this.scope = { agent, user };
  }

  /** Store one or many memories in one transaction. */
  async remember(memories: string | NewMemory | NewMemory[], keyed: Keyed = {}): Promise<Schemas['Receipt'][]> {
    const all = [memories].flat().map((each) => (typeof each === 'string' ? { content: each } : each));
    const body = { ...this.scope, memories: all };
    return (await take(this.recollect.api.POST('/v1/memories', { body, headers: keyHeader(keyed) }))).memories;
  }

  /** Recall by a cue; every hit says why it is there. */
  async recall(text: string, options: RecallOptions = {}): Promise<Schemas['RecallResult']> {
    const body = { ...options, ...this.scope, text };
    return take(this.recollect.api.POST('/v1/recall', { body }));
  }

  /** Append messages to a conversation. */
  async append(conversation: string, messages: NewMessage[], keyed: Keyed = {}): Promise<Schemas['MessageReceipt'][]> {
    const body = { ...this.scope, conversation, messages };
    return (await take(this.recollect.api.POST('/v1/messages', { body, headers: keyHeader(keyed) }))).messages;
  }

  /** Build a prompt: recent turns, memories relevant to the text and the summary, within a budget of tokens. */
  async context(conversation: string, text: string, options: ContextOptions = {}): Promise<Schemas['Context']> {
    const body = { ...options, ...this.scope, conversation, text };
    return take(this.recollect.api.POST('/v1/context', { body }));
  }

  /** Forget memories and all that was derived from them; a dry run only tells which. */
  async forget(ids: string[], { dryRun = false } = {}): Promise<string[]> {
    const body = { ...this.scope, ids, dry_run: dryRun };
    return (await take(this.recollect.api.POST('/v1/forget', { body }))).forgotten;
  }

  /** Erase everything in this scope for good, in every table and mirror; a dry run only counts. */
  async forgetEverything({ dryRun = false } = {}): Promise<Schemas['UserErasure']> {
    const body = { ...this.scope, dry_run: dryRun };
    return take(this.recollect.api.POST('/v1/forget/everything', { body }));
  }

  /** Go through the memories that a filter admits, page after page. */
  memories(filter: MemoryFilter = {}): AsyncGenerator<Schemas['Memory']> {
    const ask = (cursor: string | undefined) => {
      const query = { ...filter, ...this.scope, ...(cursor === undefined ? {} : { cursor }) };
      return take(this.recollect.api.GET('/v1/memories', { params: { query } }));
    };
    return entries(ask, (page) => page.memories);
  }

  /** Follow the scope's changes as they are committed, each once and in order, over dropped connections. */
  changes(options: FollowOptions = {}): AsyncGenerator<Change> {
    return followChanges(this.recollect, this.scope, options);
  }
}

function keyHeader({ idempotencyKey }: Keyed): Record<string, string> {
  return idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
}
