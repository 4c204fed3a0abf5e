import { QueryFailedError, QueryRunnerAlreadyReleasedError } from './typeorm.js';

/**
 * The SQLSTATE of a write to a server that takes none: a standby, or a server that was made
 * read-only.
 */
export const READ_ONLY = '25006';

/**
 * The SQLSTATE of a function that PostgreSQL refuses in the present state of the server, such as on
 * a standby.
 */
export const NOT_IN_STATE = '55000';
/**
 * The names of functions of the write-ahead log. A standby refuses them with {@link NOT_IN_STATE},
 * because only a server that takes writes has the values.
 */
const OF_WRITES = /^pg_(?:current_wal_|walfile_name)/;

/**
 * Returns true if a server refused a statement because it takes no writes: it is a standby, or was
 * made read-only. A standby refuses functions of the write-ahead log with the SQLSTATE 55000, which
 * has other meanings too. The name of the function in the error decides which is meant, because the
 * message depends on the language of the server.
 */
export function isReadOnly(error: unknown): boolean {
  const fault = reportedBy(error);
  if (typeof fault !== 'object' || fault === null || !('code' in fault)) return false;
  if (fault.code === READ_ONLY) return true;
  if (fault.code !== NOT_IN_STATE || !('routine' in fault)) return false;
  return typeof fault.routine === 'string' && OF_WRITES.test(fault.routine);
}

/**
 * The SQLSTATE of a statement that fails because no service has checked the server for lost commits
 * since the server started (`database/identity`).
 */
export const UNCONFIRMED = 'SVC01';

/**
 * The SQLSTATE of a statement that PostgreSQL canceled, because the statement exceeded its time
 * limit or another connection asked for it.
 */
export const CANCELED = '57014';

/** The SQLSTATE of a statement that waited too long for a lock. */
const LOCK_TIMEOUT = '55P03';

/**
 * The SQLSTATEs after which the same request may succeed later. They are connection exceptions
 * (08), insufficient resources such as too many connections (53), operator intervention (shutdown,
 * crash, start-up) and the statement timeout (57), the lock timeout, the end of an idle
 * transaction, and {@link UNCONFIRMED}. A server that takes no writes is recognized by {@link
 * isReadOnly}.
 */
const AWAY_STATES = new RegExp(`^(?:08...|53...|57P..|${CANCELED}|${LOCK_TIMEOUT}|25P03|SVC01)$`);

/** The codes of Node for a server that does not listen or does not respond. */
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

/**
 * Codes that mean an unreachable server only if they occur while connecting. The Unix socket does
 * not exist (ENOENT), or its queue is full (EAGAIN).
 */
const AWAY_WHEN_CONNECTING: ReadonlySet<string> = new Set(['ENOENT', 'EAGAIN']);

/** The messages of errors of an unreachable server to which pg and its pool give no code. */
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
 * Returns true if an error means that the database cannot be reached or cannot respond now. The
 * same request may succeed later, because neither the caller nor the statement is at fault.
 */
export function isDatabaseAway(error: unknown): boolean {
  // The connection was lost during a transaction.
  if (error instanceof QueryRunnerAlreadyReleasedError) return true;
  const fault = reportedBy(error);
  if (!(fault instanceof Error)) return false;
  if (isReadOnly(fault)) return true;
  const code = codeOf(fault);
  if (code !== undefined && AWAY_WHEN_CONNECTING.has(code)) {
    return 'syscall' in fault && fault.syscall === 'connect';
  }
  if (code !== undefined) return AWAY_STATES.test(code) || AWAY_SYSTEM_CODES.has(code);
  return AWAY_MESSAGES.has(fault.message);
}

/**
 * The SQLSTATEs of a refused connection: the role may not log in, or has another password
 * (28000, 28P01), and the database has another name (3D000).
 */
const REFUSED_STATES: ReadonlySet<string> = new Set(['28000', '28P01', '3D000']);

/**
 * The SQLSTATEs that a refused connection shares with refused statements. By 42501 the role may not
 * use the database or an object, and by 55000 the database accepts no connections. A connection is
 * meant if the error names PostgreSQL's function that checks new connections.
 */
const ALSO_REFUSED_STATES: ReadonlySet<string> = new Set(['42501', '55000']);
const CHECKS_CONNECTION = 'CheckMyDatabase';

/**
 * Returns true if PostgreSQL refused to open a connection, for example because the role is locked
 * or the database was renamed. The service cannot start then. A service that runs waits until an
 * operator has corrected the cause ({@link isOutage}).
 */
export function isConnectionRefused(error: unknown): boolean {
  const fault = reportedBy(error);
  const state = sqlStateOf(fault);
  if (state === undefined) return false;
  if (REFUSED_STATES.has(state)) return true;
  if (!ALSO_REFUSED_STATES.has(state)) return false;
  return fault instanceof Error && 'routine' in fault && fault.routine === CHECKS_CONNECTION;
}

/** The codes of Node for a TLS connection that fails, most often because of a certificate. */
const TLS_CODES =
  /^(?:ERR_TLS_CERT_|ERR_SSL_|EPROTO$|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(?:GET|VERIFY)_)/;

/** The messages of pg, which have no code, if a server answers the request for TLS by a refusal. */
const TLS_MESSAGES: ReadonlySet<string> = new Set([
  'The server does not support SSL connections',
  'There was an error establishing an SSL connection',
]);

/**
 * Returns true if TLS to the database fails, for example because the certificate of the server has
 * expired, or has another authority after a rotation. The service cannot start then. A service that
 * runs waits until an operator has corrected it ({@link isOutage}).
 */
function isTlsFault(error: unknown): boolean {
  const fault = reportedBy(error);
  if (!(fault instanceof Error)) return false;
  const code = codeOf(fault);
  return code === undefined ? TLS_MESSAGES.has(fault.message) : TLS_CODES.test(code);
}

/**
 * Returns true if an error means that a service that runs cannot use its database now: the database
 * is away, refuses connections, or cannot be reached by TLS. The same request may succeed later.
 */
export function isOutage(error: unknown): boolean {
  return isDatabaseAway(error) || isConnectionRefused(error) || isTlsFault(error);
}

/**
 * Returns true if a concurrent transaction or migration made the statement fail: by a deadlock, a
 * serialization failure, or a changed type of a column. The same statement may succeed if it is
 * repeated.
 */
export function isLostRace(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === '40P01' || state === '40001' || isStalePlan(error);
}

/**
 * Returns true if a statement failed only because of other transactions or a migration. The server
 * has then certainly undone the statement, unlike after a lost connection.
 */
export function isLockFault(error: unknown): boolean {
  return sqlStateOf(error) === LOCK_TIMEOUT || isLostRace(error);
}

/** The durations of failed statements in milliseconds, by the error of the driver. */
const durations = new WeakMap<object, number>();

/** Stores the duration of a failed statement. {@link isTimedOut} needs it. */
export function noteDuration(error: unknown, milliseconds: number): void {
  const fault = reportedBy(error);
  if (fault instanceof Error) durations.set(fault, milliseconds);
}

/**
 * Returns true if a time limit ended a statement. If an operator cancels a statement, PostgreSQL
 * reports the same SQLSTATE ({@link CANCELED}), and only the message, which is translated, differs.
 * So the duration decides: a time limit never ends a statement before the limit has passed.
 *
 * @param limit the time limit, in milliseconds
 */
export function isTimedOut(error: unknown, limit: number): boolean {
  const fault = reportedBy(error);
  if (sqlStateOf(fault) !== CANCELED || !(fault instanceof Error)) return false;
  return (durations.get(fault) ?? 0) >= limit;
}

/**
 * Returns true if PostgreSQL refused a value because of a character that it cannot store: U+0000,
 * or one half of a surrogate pair alone. For the half, PostgreSQL reports that the text is no JSON.
 * `JSON.stringify` writes every JSON that this service sends, so that such a report has no other
 * cause.
 */
export function isUnstorable(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === '22021' || state === '22P05' || (state === '22P02' && isOfJson(error));
}

/**
 * Returns true if the JSON parser of PostgreSQL reported an error. The name of the function in the
 * error shows that in every language of the server. Versions of PostgreSQL use different names, so
 * only their beginning is compared.
 */
function isOfJson(error: unknown): boolean {
  const fault = reportedBy(error);
  return fault instanceof Error && 'routine' in fault && String(fault.routine).startsWith('json_');
}

/**
 * Returns true if a prepared statement failed because a migration changed the type of a column
 * after it was prepared. Prepared again, the statement succeeds.
 */
export function isStalePlan(error: unknown): boolean {
  const fault = reportedBy(error);
  return (
    sqlStateOf(fault) === '0A000' &&
    fault instanceof Error &&
    fault.message.includes('cached plan must not change result type')
  );
}

/** Returns the SQLSTATE of an error of PostgreSQL; undefined for any other error. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = codeOf(reportedBy(error));
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/**
 * Returns the name of the violated constraint (SQLSTATE class 23); undefined for any other error.
 */
export function violatedConstraint(error: unknown): string | undefined {
  const fault = reportedBy(error);
  if (!sqlStateOf(fault)?.startsWith('23')) return undefined;
  if (!(fault instanceof Error) || !('constraint' in fault)) return undefined;
  return typeof fault.constraint === 'string' ? fault.constraint : undefined;
}

/**
 * Returns the reason of an error in one line for an operator. For a failed connection to several IP
 * addresses, Node gives a code and no message, so the code is the reason.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || (codeOf(error) ?? error.name);
}

/** Returns the driver's error inside an error of TypeORM; any other error is returned as it is. */
function reportedBy(error: unknown): unknown {
  return error instanceof QueryFailedError ? error.driverError : error;
}

/** Returns the `code` of an error: a SQLSTATE, or a code of Node such as ENOENT. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
