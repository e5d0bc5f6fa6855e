import { expect, it } from 'vitest';
import { entries, parseEvent, readEvents } from '../../src/index.js';

it('asks for a page only when the one before is used up', async () => {
  const asked: (string | undefined)[] = [];
  const ask = async (cursor: string | undefined) => {
    asked.push(cursor);
    return { found: cursor === undefined ? [1, 2] : [3], next_cursor: cursor === undefined ? 'b' : null };
  };
  const seen: number[] = [];
  for await (const each of entries(ask, (page) => page.found)) {
    seen.push(each);
    if (each === 1) expect(asked).toEqual([undefined]);
  }
  expect(seen).toEqual([1, 2, 3]);
  expect(asked).toEqual([undefined, 'b']);
});

it('reads events however the stream is cut, and passes heartbeats over', async () => {
  const text = ': beat\n\nid: 7\nevent: change\ndata: {"a":\ndata: "你"}\n\n: beat\n\ndata:x\r\n\r\n';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 3, 1000]) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let from = 0; from < bytes.length; from += size) controller.enqueue(bytes.slice(from, from + size));
        controller.close();
      },
    });
    const events = [];
    for await (const event of readEvents(body)) events.push(event);
    expect(events).toEqual([
      { id: '7', event: 'change', data: '{"a":\n"你"}' },
      { id: '', event: 'message', data: 'x' },
    ]);
  }
  expect(parseEvent(': nothing')).toBeNull();
});
