import type { DataSource } from './typeorm.js';

/** The facts about a pool whose connections go through a pooler in transaction mode. */
interface Pooled {
  /** The pool whose connections are sessions of PostgreSQL itself. */
  readonly direct: DataSource;
  /** True if the pooler passes on named prepared statements. */
  readonly knowsNames: boolean;
}

const pooled = new WeakMap<DataSource, Pooled>();

/** Records that a pooler in transaction mode stands between a pool and PostgreSQL. */
export function setPooled(pool: DataSource, traits: Pooled): void {
  pooled.set(pool, traits);
}

/**
 * Returns a pool whose connections keep what belongs to a session, such as an advisory lock or
 * LISTEN. It is the given pool itself, unless a pooler in transaction mode serves that pool.
 */
export function directPoolOf(pool: DataSource): DataSource {
  return pooled.get(pool)?.direct ?? pool;
}

/**
 * Returns false if statements of a pool must have no name. The pooler may then run a statement on a
 * connection that has not prepared it.
 */
export function preparesByName(pool: DataSource): boolean {
  return pooled.get(pool)?.knowsNames ?? true;
}
