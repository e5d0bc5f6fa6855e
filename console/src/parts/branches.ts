/** A conversation's messages as rails: each branch in a lane of its own. Pure. */
export type Said = { id: string; number: number; parent: string | null };
export type Rail = {
  lane: number;
  /** Whether a line comes from above: its parent is among the messages. */
  follows: boolean;
  /** Whether another message follows in its own lane. */
  goesOn: boolean;
  /** Lanes of branches that begin below this message. */
  opens: number[];
  /** Lanes that pass by this row. */
  passing: number[];
};

/** Give every message, in the order of their numbers, its lane: the first answer goes on in its parent's, others branch off. */
export function layBranches(messages: Said[]): Rail[] {
  const rows = new Map(messages.map((message, row) => [message.id, row]));
  const rails: Rail[] = [];
  const lanes: { first: number; last: number }[] = [];
  messages.forEach((message, row) => {
    const above = message.parent === null ? undefined : rows.get(message.parent);
    const parent = above !== undefined && above < row ? rails[above] : undefined;
    const goesOn = parent !== undefined && !parent.goesOn;
    const lane = goesOn ? parent.lane : lanes.length;
    if (goesOn) parent.goesOn = true;
    else {
      parent?.opens.push(lane);
      lanes.push({ first: parent && above !== undefined ? above : row, last: row });
    }
    const own = lanes[lane];
    if (own) own.last = row;
    rails.push({ lane, follows: parent !== undefined, goesOn: false, opens: [], passing: [] });
  });
  rails.forEach((rail, row) => {
    rail.passing = lanes.flatMap(({ first, last }, lane) =>
      lane !== rail.lane && first < row && row < last ? [lane] : [],
    );
  });
  return rails;
}

/** The ids of a thread: from a leaf back to the root. */
export function thread(messages: Said[], leaf: string | null): Set<string> {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const found = new Set<string>();
  let next = leaf;
  while (next !== null && !found.has(next)) {
    const message = byId.get(next);
    if (!message) break;
    found.add(next);
    next = message.parent;
  }
  return found;
}
