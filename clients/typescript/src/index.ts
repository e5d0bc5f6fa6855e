export type { Change, FollowOptions } from './changes.js';
export { type Api, connect, type Options, Recollect, type Schemas, take } from './client.js';
export { parseEvent, readEvents, type ServerEvent } from './events.js';
export type { ContextOptions, Keyed, MemoryFilter, NewMemory, NewMessage, RecallOptions } from './mind.js';
export { Mind } from './mind.js';
export { entries, pages } from './pages.js';
export { type FieldProblem, Problem, type ProblemCode } from './problem.js';
export type { Fetch, RetryOptions } from './retry.js';
export type { components, operations, paths } from './schema.js';
