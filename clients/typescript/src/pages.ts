/** Long lists, one page after the other, as one async iterator. */

type Paged = { next_cursor?: string | null };

/** Go through all pages; the next one is asked for when the one before is used up. */
export async function* pages<P extends Paged>(ask: (cursor: string | undefined) => Promise<P>): AsyncGenerator<P> {
  let cursor: string | undefined;
  do {
    const page = await ask(cursor);
    yield page;
    cursor = page.next_cursor || undefined;
  } while (cursor !== undefined);
}

/** Go through the entries of all pages. */
export async function* entries<P extends Paged, T>(
  ask: (cursor: string | undefined) => Promise<P>,
  read: (page: P) => readonly T[],
): AsyncGenerator<T> {
  for await (const page of pages(ask)) yield* read(page);
}
