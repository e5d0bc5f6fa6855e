import { expect, test } from 'vitest';
import { connect } from '../../src/index.js';

function remembering(answers: (string | null)[], maxStaleness?: number) {
  const sent: Request[] = [];
  const fetch = async (request: Request) => {
    sent.push(request);
    const position = answers.shift();
    const headers = { 'Content-Type': 'application/json', ...(position ? { 'Recollect-Position': position } : {}) };
    return new Response('{"memories": []}', { headers });
  };
  const recollect = connect({ url: 'http://memory', key: 'k', fetch, ...(maxStaleness ? { maxStaleness } : {}) });
  return { mind: recollect.mind('ada'), recollect, sent };
}

test('the newest position of each server is sent with every call after it', async () => {
  const { mind, recollect, sent } = remembering(['0.1.0/FF', '0.1.0/A', '3.1.1/0', '0.2.0/1', null]);
  for (let call = 0; call < 5; call += 1) await mind.remember('x');
  const told = sent.map((request) => request.headers.get('recollect-position'));
  expect(told).toEqual([null, '0.1.0/FF', '0.1.0/FF', '0.1.0/FF,3.1.1/0', '0.2.0/1,3.1.1/0']);
  expect(recollect.position).toBe('0.2.0/1,3.1.1/0');
});

test('what another program was answered can be seen, and what is no position is passed over', async () => {
  const { mind, recollect, sent } = remembering(['yesterday']);
  recollect.see('0.1.0/5');
  await mind.remember('x');
  expect(sent[0]?.headers.get('recollect-position')).toBe('0.1.0/5');
  expect(recollect.position).toBe('0.1.0/5');
});

test('staleness is allowed by an option', async () => {
  const { mind, sent } = remembering([null], 2.5);
  await mind.remember('x');
  expect(sent[0]?.headers.get('recollect-max-staleness')).toBe('2.5');
});
