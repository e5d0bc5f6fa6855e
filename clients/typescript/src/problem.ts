/** What the server refused, or could not do, as an error with a stable code. */

/** The codes that the server answers with, and two of this client: nothing was answered, or nothing that it can read. */
export type ProblemCode =
  | 'busy'
  | 'budget'
  | 'chat_model'
  | 'conflict'
  | 'cursor_expired'
  | 'embedder'
  | 'error'
  | 'forbidden'
  | 'invalid_input'
  | 'method_not_allowed'
  | 'not_found'
  | 'setup'
  | 'too_large'
  | 'unauthenticated'
  | 'unavailable'
  | 'unreachable'
  | 'unreadable';

export type FieldProblem = { field: string; message: string };

export class Problem extends Error {
  override readonly name = 'Problem';

  constructor(
    /** The HTTP status; 0 if the server did not answer. */
    readonly status: number,
    readonly code: ProblemCode,
    detail: string,
    readonly errors: readonly FieldProblem[] = [],
    /** What to name when one asks the operator about it. */
    readonly requestId = '',
    /** The whole body, as it was answered. */
    readonly body: Readonly<Record<string, unknown>> = {},
  ) {
    super(detail);
  }

  /** Whether the same request may succeed later. */
  get passing(): boolean {
    return UNAVAILABLE.has(this.status) || this.status === 0;
  }
}

export const UNAVAILABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Read the problem of an answer that is not a success; whatever stands in it, a problem comes out. */
export async function readProblem(answer: Response): Promise<Problem> {
  const text = await answer.text().catch(() => '');
  const body = asRecord(text);
  const plain = UNAVAILABLE.has(answer.status) ? 'unavailable' : 'error';
  const code = typeof body.code === 'string' ? (body.code as ProblemCode) : plain;
  const detail = typeof body.detail === 'string' ? body.detail : `The server answered ${answer.status}.`;
  const errors = Array.isArray(body.errors) ? body.errors.filter(isFieldProblem) : [];
  return new Problem(answer.status, code, detail, errors, answer.headers.get('x-request-id') ?? '', body);
}

function asRecord(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function isFieldProblem(value: unknown): value is FieldProblem {
  return typeof value === 'object' && value !== null && 'field' in value && 'message' in value;
}
