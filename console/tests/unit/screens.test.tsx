import { fireEvent, screen, waitFor } from '@testing-library/react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ME, open, problem } from './fake-server';

const MEMORY = {
  id: '01a1eb33-f0ac-7000-a9db-6a955a77da98',
  kind: 'event',
  content: '<img src=x onerror=alert(1)> [a](javascript:1) \u202etxt',
  speaker: '',
  role: null,
  importance: 5,
  keywords: [],
  origin: 'http:test',
  trust: 50,
  occurred_at: '2026-03-02T18:00:00Z',
  created_at: '2026-03-02T18:00:00Z',
  last_accessed_at: '2026-03-02T18:00:00Z',
  superseded_at: null,
  pinned: false,
  state: 'current',
};
const AT = `/console/a/ada/u/li/mind?memory=${MEMORY.id}`;
const DETAIL = {
  'GET /v1/key': ME,
  'GET /v1/memories': { memories: [], next_cursor: null },
  [`GET /v1/memories/${MEMORY.id}`]: MEMORY,
  [`GET /v1/memories/${MEMORY.id}/evidence`]: { sources: [], derived: [], whole: true, versions: [MEMORY] },
};

afterEach(() => vi.unstubAllGlobals());

describe('whoever is not signed in', () => {
  it('sees the sign-in, and why a key is refused', async () => {
    const no = problem(401, 'unauthenticated', 'Unknown.');
    const asked = open('/console/', { 'GET /v1/key': no, 'POST /console/session': no });
    fireEvent.change(await screen.findByLabelText('API key'), { target: { value: 'rec_wrong' } });
    fireEvent.click(screen.getByRole('button', { name: 'Sign in' }));
    expect((await screen.findByRole('alert')).textContent).toContain('unknown, revoked or expired');
    expect(asked).toContain('POST /console/session');
    expect((screen.getByLabelText('API key') as HTMLInputElement).value).toBe('');
  });
});

describe('a link that is used once', () => {
  it('signs in, leads to where it can be tried, and is in no address', async () => {
    const status = { version: '0', embedder: { model: '', active: true }, by_words: '', chat_model: '', jobs: [] };
    const asked = open('/console/#link=s3cret-_x', {
      'GET /v1/key': ME,
      'POST /console/session': ME,
      'GET /v1/status': status,
      'GET /v1/overview': { memories: 0 },
    });
    expect(await screen.findByRole('button', { name: 'Fill the sample mind' })).toBeTruthy();
    expect(asked[0]).toBe('POST /console/session');
    expect(location.href).toBe('http://localhost/console/a/sample/u/guest/try');
  });

  it('says that it is over, and asks for a key', async () => {
    const no = problem(401, 'unauthenticated', 'Unknown.');
    open('/console/#link=s3cret', { 'GET /v1/key': no, 'POST /console/session': no });
    expect((await screen.findByRole('alert')).textContent).toContain('no longer valid');
    expect(location.hash).toBe('');
  });
});

describe('a screen', () => {
  it('says how it fills while it is empty', async () => {
    open('/console/a/ada/u/li/mind', { 'GET /v1/key': ME, 'GET /v1/memories': { memories: [], next_cursor: null } });
    expect(await screen.findByText(/Nothing is remembered here yet/)).toBeTruthy();
    expect(screen.getByText(/recollect remember --agent ada --user li/)).toBeTruthy();
  });

  it('says which right is missing', async () => {
    const refused = problem(403, 'forbidden', 'This needs the right read.');
    open('/console/a/ada/u/li/mind', { 'GET /v1/key': ME, 'GET /v1/memories': refused });
    const alert = await screen.findByRole('alert');
    expect(alert.textContent).toContain('This needs the right read.');
    expect(alert.querySelector('button')).toBeNull();
  });

  it('tries again by itself, then offers to, and names the request', async () => {
    const away = problem(503, 'unavailable', 'The database is away.');
    const asked = open('/console/a/ada/u/li/mind', { 'GET /v1/key': ME, 'GET /v1/memories': away });
    const alert = await screen.findByRole('alert', {}, { timeout: 5000 });
    expect(alert.textContent).toContain('The database is away.');
    expect(alert.textContent).toContain('r42');
    expect(asked.filter((name) => name === 'GET /v1/memories')).toHaveLength(3);
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
    await waitFor(() => expect(asked.filter((name) => name === 'GET /v1/memories').length).toBeGreaterThan(3));
  });

  it('says that an address leads nowhere', async () => {
    open('/console/a/ada/u/li/none', { 'GET /v1/key': ME });
    expect(await screen.findByText('There is nothing at this address.')).toBeTruthy();
  });
});

describe('a memory', () => {
  it('is shown as text, whatever it is made of', async () => {
    open(AT, DETAIL);
    const shown = await screen.findByText(/onerror/);
    expect(shown.tagName).toBe('BDI');
    expect(shown.textContent).toContain(MEMORY.content);
    expect(document.querySelector('main img, main a[href^="javascript"]')).toBeNull();
  });

  it('is not offered to be forgotten by a key that may only read', async () => {
    open(AT, { ...DETAIL, 'GET /v1/key': { ...ME, rights: ['read'] } });
    await screen.findByText(/onerror/);
    expect(screen.queryByRole('button', { name: 'Forget …' })).toBeNull();
    expect(screen.getByText('read only')).toBeTruthy();
    open(AT, DETAIL);
    expect(await screen.findByRole('button', { name: 'Forget …' })).toBeTruthy();
  });
});

describe('a key that is bound', () => {
  it('is led to its scope, and sees no other', async () => {
    open('/console/', {
      'GET /v1/key': { ...ME, agent: 'ada', user: 'li' },
      'GET /v1/memories': { memories: [], next_cursor: null },
    });
    await screen.findByText(/Nothing is remembered here yet/);
    expect(location.pathname).toBe('/console/a/ada/u/li/mind');
    expect(screen.queryByRole('link', { name: 'Home' })).toBeNull();
  });
});

it('keeps what may not be read from a key that may only administer', async () => {
  const asked = open('/console/a/ada/u/li/mind', { 'GET /v1/key': { ...ME, rights: ['admin'] } });
  expect(await screen.findByText(/may not read memories/)).toBeTruthy();
  expect(asked).toEqual(['GET /v1/key']);
});
