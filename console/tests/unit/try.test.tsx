import { fireEvent, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { ME, open, problem } from './fake-server';

const SPENDING = { system: 0, summary: 0, memories: 20, history: 0, cue: 5, framing: 5, total: 30, budget: 2000 };
const CONTEXT = {
  messages: [{ role: 'user', content: 'Hello' }],
  hits: [],
  spending: SPENDING,
  history: { messages: [] },
  lines: [],
};
const STATUS = { version: '0', embedder: { model: '', active: true }, by_words: '', chat_model: '', jobs: [] };
const STORED = '01a1eb33-f0ac-7000-a9db-6a955a77da98';
const ANSWERS = {
  'GET /v1/key': ME,
  'GET /v1/status': STATUS,
  'GET /v1/memories': { memories: [], next_cursor: null },
  'POST /v1/context': CONTEXT,
  'POST /v1/messages': { messages: [{ id: STORED, number: 1, parent: null, tokens: 3 }] },
  'POST /v1/chat': { answer: 'Good day.', context: CONTEXT, appended: [{ id: STORED }] },
};

async function say(text: string) {
  fireEvent.change(await screen.findByLabelText('Say something'), { target: { value: text } });
  fireEvent.click(screen.getByRole('button', { name: 'Send' }));
  await screen.findByText('What the prompt held');
}

afterEach(() => vi.unstubAllGlobals());

it('lets the model answer where there is one', async () => {
  const asked = open('/console/a/ada/u/li/try', { ...ANSWERS, 'GET /v1/status': { ...STATUS, chat_model: 'm' } });
  await say('Hello');
  expect(screen.getByText('Good day.')).toBeTruthy();
  expect(asked).toContain('POST /v1/chat');
  expect(asked).not.toContain('POST /v1/messages');
});

it('shows all but the answer without a model, and stores what is said', async () => {
  const asked = open('/console/a/ada/u/li/try', ANSWERS);
  await say('Hello');
  expect(screen.getByText(/There is no chat model to answer/)).toBeTruthy();
  expect(screen.getByText(/RECOLLECT_CHAT_MODEL/)).toBeTruthy();
  expect(asked).toContain('POST /v1/messages');
  expect(asked).not.toContain('POST /v1/chat');
});

it('stores nothing for a key that may only read', async () => {
  const asked = open('/console/a/ada/u/li/try', { ...ANSWERS, 'GET /v1/key': { ...ME, rights: ['read'] } });
  await say('Hello');
  expect(asked).toContain('POST /v1/context');
  expect(asked.some((name) => ['POST /v1/messages', 'POST /v1/chat'].includes(name))).toBe(false);
});

it('says what the budget of the day refuses, and asks the model once', async () => {
  const spent = problem(503, 'budget', 'The budget of today is spent.');
  const status = { ...STATUS, chat_model: 'm' };
  const asked = open('/console/a/ada/u/li/try', { ...ANSWERS, 'GET /v1/status': status, 'POST /v1/chat': spent });
  fireEvent.change(await screen.findByLabelText('Say something'), { target: { value: 'Hello' } });
  fireEvent.click(screen.getByRole('button', { name: 'Send' }));
  expect((await screen.findByRole('alert')).textContent).toContain('The budget of today is spent.');
  expect(asked.filter((name) => name === 'POST /v1/chat')).toHaveLength(1);
});
