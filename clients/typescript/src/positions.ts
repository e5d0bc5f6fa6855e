/** What was written through a client is found through it: it tells servers the newest position that it was answered. */
import type { Fetch } from './retry.js';

export const POSITION = 'recollect-position';
export const MAX_STALENESS = 'recollect-max-staleness';
const FORM = /^(\d{1,5})\.(\d{1,10})\.([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/;

type Position = { shard: string; timeline: number; lsn: bigint; written: string };

/** The newest position of each server. */
export class Positions {
  readonly #newest = new Map<string, Position>();

  /** All of them, as a header has them; empty where there are no replicas. */
  get written(): string {
    return [...this.#newest.values()].map((each) => each.written).join(',');
  }

  /** Take into account what an answer had, or another client; what is no position is passed over. */
  see(written: string): void {
    for (const part of written.split(',')) {
      const position = read(part.trim());
      if (position === null) continue;
      const known = this.#newest.get(position.shard);
      if (known === undefined || isNewer(position, known)) this.#newest.set(position.shard, position);
    }
  }

  /** Wrap a fetch: it tells what was seen, and sees what is answered. */
  wrap(send: Fetch): Fetch {
    return async (request) => {
      if (this.#newest.size > 0) request.headers.set(POSITION, this.written);
      const answer = await send(request);
      this.see(answer.headers.get(POSITION) ?? '');
      return answer;
    };
  }
}

function read(written: string): Position | null {
  const [, shard, timeline, high, low] = FORM.exec(written) ?? [];
  if (!shard || !timeline || !high || !low) return null;
  return { shard, timeline: Number(timeline), lsn: (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`), written };
}

/** Counted by timelines first: a later one begins where a replica became the primary. */
function isNewer(one: Position, other: Position): boolean {
  return one.timeline === other.timeline ? one.lsn > other.lsn : one.timeline > other.timeline;
}
