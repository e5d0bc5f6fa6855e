/** The words of the screens in English. */
import { stream, topics } from './en-more';
import { ask, conversations, knowledge, mind } from './en-screens';

type Widen<T> = T extends string
  ? string
  : T extends (...given: infer A) => string
    ? (...given: A) => string
    : { [K in keyof T]: Widen<T[K]> };

export const en = {
  language: { code: 'zh-Hans', other: '中文' },
  states: {
    loading: 'Loading',
    failed: 'This could not be done.',
    refused: 'This key may not do that.',
    retry: 'Try again',
    requestId: 'Request',
    close: 'Close',
    cancel: 'Cancel',
    more: 'Show more',
    copy: 'Copy',
    copied: 'Copied',
    typeToConfirm: 'To go on, type',
  },
  frame: {
    skip: 'Skip to the content',
    screens: 'Screens',
    scope: 'Memory of',
    noUser: '(no user)',
    home: 'Home',
    mind: 'Mind',
    ask: 'Ask',
    conversations: 'Conversations',
    knowledge: 'Knowledge',
    topics: 'Topics',
    stream: 'Stream',
    readOnly: 'read only',
    bound: 'one scope',
    theme: 'Light or dark',
    signOut: 'Sign out',
    nowhere: 'There is nothing at this address.',
    mayNotRead: 'This key may not read memories. Sign in with one that has the right read.',
  },
  signIn: {
    says: 'See what is remembered, why it was recalled, and mend it.',
    key: 'API key',
    enter: 'Sign in',
    wrong: 'This key is unknown, revoked or expired.',
    hint: 'The key is exchanged for a session of twelve hours. This page does not keep it.',
  },
  home: {
    title: 'Home',
    says: 'Is all well, and whose memory do you look at?',
    health: 'Health',
    service: 'Service',
    ready: 'ready',
    embedder: 'Embedding model',
    byWords: 'none: recall goes by words',
    chatModel: 'Chat model',
    noChatModel: 'none: no facts are learned',
    jobs: 'Jobs',
    nothingToDo: 'Nothing waits.',
    waiting: (jobs: number) => `${jobs} to do`,
    failed: (jobs: number) => `${jobs} failed`,
    cost: 'Cost of models, 14 days',
    tokens: (tokens: string) => `${tokens} tokens`,
    budget: (used: string, limit: string) => `Today ${used} of ${limit}`,
    find: 'Find an agent or a user by a part of the name',
    order: 'Order',
    orders: { recent: 'last written', size: 'most memories', name: 'name' },
    agent: 'Agent',
    user: 'User',
    memories: 'Memories',
    lastWritten: 'Last written',
    days: '30 days',
    inDays: (memories: number, days: number) => `${memories} memories in ${days} days`,
    noScopes: 'Nothing is remembered yet. The first memory makes the first row.',
    noSuchScope: 'No agent and no user is named like this.',
  },
  kinds: {
    message: 'message',
    event: 'event',
    chat: 'chat',
    thought: 'thought',
    fact: 'fact',
    summary: 'summary',
  },
  families: { meaning: 'meaning', words: 'words', who: 'who', time: 'time', form: 'form', against: 'against' },
  mind,
  ask,
  conversations,
  knowledge,
  topics,
  stream,
};

export type Words = Widen<typeof en>;
