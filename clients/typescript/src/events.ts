/** Server-sent events read by fetch: EventSource can send no header, and a key must not stand in an address. */

export type ServerEvent = { id: string; event: string; data: string };

/** Split a stream into its events; comments (heartbeats) and empty events are passed over. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Read one event; null if it says nothing. */
export function parseEvent(block: string): ServerEvent | null {
  const found = { id: '', event: 'message', data: [] as string[] };
  for (const line of block.split(/\r?\n/)) {
    const [name = '', value = ''] = splitField(line);
    if (name === 'data') found.data.push(value);
    else if (name === 'id' || name === 'event') found[name] = value;
  }
  return found.data.length === 0 ? null : { ...found, data: found.data.join('\n') };
}

function splitField(line: string): [string, string] {
  const colon = line.indexOf(':');
  if (colon < 0) return [line, ''];
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
}
