/** The client: every path of the API with its types, and one scope's most used calls by name. */
import createClient, { type Client, type Middleware } from 'openapi-fetch';
import { Mind } from './mind.js';
import { MAX_STALENESS, Positions } from './positions.js';
import { readProblem } from './problem.js';
import { type Fetch, type RetryOptions, retrying } from './retry.js';
import type { components, paths } from './schema.js';

export type Schemas = components['schemas'];
export type Api = Client<paths, 'application/json'>;
export type Options = RetryOptions & {
  /** Where the server is, with the path that a proxy puts it under, if any. */
  url: string;
  /** The API key; left out where a cookie stands for it, as in the console. */
  key?: string;
  /** Headers of every request. */
  headers?: Record<string, string>;
  /** By how many seconds a replica may be behind that answers, where nothing was written yet; else the primary does. */
  maxStaleness?: number;
  fetch?: Fetch;
};

const raise: Middleware = {
  async onResponse({ response }) {
    if (!response.ok) throw await readProblem(response);
    return undefined;
  },
};

export class Recollect {
  /** Every path of the API: `api.GET('/v1/jobs', {...})`. What is not a success is thrown as a `Problem`. */
  readonly api: Api;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sends one request as it is, without another attempt. */
  readonly send: Fetch;
  readonly #positions = new Positions();

  constructor({ url, key, headers = {}, maxStaleness, fetch, ...retry }: Options) {
    this.url = url.replace(/\/+$/, '');
    const allowed: Record<string, string> = maxStaleness === undefined ? {} : { [MAX_STALENESS]: String(maxStaleness) };
    this.headers = { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...allowed, ...headers };
    this.send = this.#positions.wrap(fetch ?? ((request) => globalThis.fetch(request)));
    this.api = createClient<paths, 'application/json'>({
      baseUrl: this.url,
      headers: this.headers,
      fetch: retrying(this.send, retry),
      querySerializer: { array: { style: 'form', explode: true } },
    });
    this.api.use(raise);
  }

  /** The newest position that this client has seen of each server; empty where there are no replicas. */
  get position(): string {
    return this.#positions.written;
  }

  /** Take into account what another program wrote, by the position that it was answered: reads will find it. */
  see(position: string): void {
    this.#positions.see(position);
  }

  /** What an agent remembers, of a user or for itself. */
  mind(agent: string, user = ''): Mind {
    return new Mind(this, agent, user);
  }
}

/** Connect to a server; nothing is asked of it before the first call. */
export const connect = (options: Options): Recollect => new Recollect(options);

/** Await a call and give its answer alone; a problem is thrown by the call itself. */
export async function take<T>(call: Promise<{ data?: T }>): Promise<Exclude<T, undefined>> {
  return (await call).data as Exclude<T, undefined>;
}
