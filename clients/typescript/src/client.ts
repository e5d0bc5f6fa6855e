/** The client: every path of the API with its types, and one scope's most used calls by name. */
import createClient, { type Client, type Middleware } from 'openapi-fetch';
import { Mind } from './mind.js';
import { Problem, readProblem } from './problem.js';
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

  constructor({ url, key, headers = {}, fetch, ...retry }: Options) {
    if (!/^https?:\/\//i.test(url))
      throw new Problem(0, 'setup', `The URL must begin with http:// or https://: ${url}`);
    this.url = url.replace(/\/+$/, '').replace(/\/v1$/, '');
    this.headers = { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...headers };
    this.send = fetch ?? ((request) => globalThis.fetch(request));
    this.api = createClient<paths, 'application/json'>({
      baseUrl: this.url,
      headers: this.headers,
      fetch: retrying(this.send, retry),
      querySerializer: { array: { style: 'form', explode: true } },
    });
    this.api.use(raise);
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
