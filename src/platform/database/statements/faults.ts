import { QueryFailedError, QueryRunnerAlreadyReleasedError } from 'typeorm';

/**
 * SQLSTATEs of a server that is going, gone, coming or overloaded: connection exceptions (08), insufficient resources
 * such as too many connections (53), operator intervention: shutdown, crash, start-up, and the statement timeout (57),
 * the lock timeout and the end of a transaction that idled.
 */
const AWAY_STATES = /^(?:08...|53...|57P..|57014|55P03|25P03)$/;

/** What Node says when nobody listens where the server was, or nobody answers any more. */
const AWAY_SYSTEM_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** These, too, but of a Unix socket: it is gone, or a frozen server leaves its queue full. Of anything else they say nothing. */
const AWAY_WHEN_CONNECTING: ReadonlySet<string> = new Set(['ENOENT', 'EAGAIN']);

/** pg and its pool give these no code, so their text is all there is. */
const AWAY_MESSAGES: ReadonlySet<string> = new Set([
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'timeout expired',
  'Query read timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'Cannot use a pool after calling end on the pool',
]);

/**
 * Whether an error means that the database cannot be reached or cannot answer now, so that the same request may well
 * succeed later: neither the caller nor the statement is at fault.
 */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof QueryRunnerAlreadyReleasedError) return true; // its connection died under a transaction
  const fault = reportedBy(error);
  if (!(fault instanceof Error)) return false;
  const code = codeOf(fault);
  if (code !== undefined && AWAY_WHEN_CONNECTING.has(code)) {
    return 'syscall' in fault && fault.syscall === 'connect';
  }
  if (code !== undefined) return AWAY_STATES.test(code) || AWAY_SYSTEM_CODES.has(code);
  return AWAY_MESSAGES.has(fault.message);
}

/**
 * Whether the statement lost against another one (deadlock, serialization, a migration under a prepared statement) and the
 * same request may well succeed.
 */
export function isLostRace(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === '40P01' || state === '40001' || isStalePlan(error);
}

/** How long statements took that failed, in milliseconds, by what the driver reported. */
const durations = new WeakMap<object, number>();

/** Keeps how long a statement took that failed: {@link isTimedOut} needs it. */
export function noteDuration(error: unknown, milliseconds: number): void {
  const fault = reportedBy(error);
  if (fault instanceof Error) durations.set(fault, milliseconds);
}

/**
 * Whether a statement was ended by its time limit. PostgreSQL reports that as it reports a statement that an operator cancelled
 * (57014), and tells the two apart by a text in the language of the server alone. But the limit ends no statement before its
 * time, and the server's clock starts after ours.
 *
 * @param limit in milliseconds
 */
export function isTimedOut(error: unknown, limit: number): boolean {
  const fault = reportedBy(error);
  if (sqlStateOf(fault) !== '57014' || !(fault instanceof Error)) return false;
  return (durations.get(fault) ?? 0) >= limit;
}

/** Whether a value has a character that PostgreSQL keeps no text with: U+0000, or half of a surrogate pair. */
export function isUnstorable(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === '22021' || state === '22P05';
}

/** Whether a migration has changed the type of a column since the statement was prepared. */
export function isStalePlan(error: unknown): boolean {
  const fault = reportedBy(error);
  return (
    sqlStateOf(fault) === '0A000' &&
    fault instanceof Error &&
    fault.message.includes('cached plan must not change result type')
  );
}

/** The five-character SQLSTATE PostgreSQL reported, or undefined for any other error. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = codeOf(reportedBy(error));
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** The name of the constraint (SQLSTATE class 23) a statement ran into, or undefined for any other error. */
export function violatedConstraint(error: unknown): string | undefined {
  const fault = reportedBy(error);
  if (!sqlStateOf(fault)?.startsWith('23')) return undefined;
  if (!(fault instanceof Error) || !('constraint' in fault)) return undefined;
  return typeof fault.constraint === 'string' ? fault.constraint : undefined;
}

/** What went wrong, in one line for an operator. Node gives the failure of several addresses a code and no message. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || (codeOf(error) ?? error.name);
}

/** TypeORM wraps what the driver reported. */
function reportedBy(error: unknown): unknown {
  return error instanceof QueryFailedError ? error.driverError : error;
}

/** The `code` of an error: a SQLSTATE of PostgreSQL's, or one of Node's own such as ENOENT. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
