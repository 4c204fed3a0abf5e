import { DATABASE_PAGE } from '#platform/database/url/database-url.js';
import {
  codeOf,
  isConnectionRefused,
  isDatabaseAway,
  isOutage,
  isReadOnly,
  reasonOf,
  sqlStateOf,
  UNCONFIRMED,
} from '#platform/database/statements/faults.js';

/**
 * A kind of refusal by the database server, and the advice to the operator. The operator must act,
 * because another attempt would be refused again.
 */
interface Refusal {
  readonly is: (code: string | undefined, message: string, error?: unknown) => boolean;
  readonly advice: string;
}

const LOST_STATEMENT: Refusal = {
  is: (code) => code === '26000' || code === '42P05',
  advice:
    'A pooler in transaction mode loses prepared statements. Set SVC_DATABASE_POOLER and SVC_DATABASE_DIRECT_URL, connect to PostgreSQL itself, or use session mode',
};

/**
 * The refusals for which the log has advice. PgBouncer gives all its own faults the SQLSTATE 08P01,
 * so they are told apart by their text, which is always English.
 */
const REFUSALS: readonly Refusal[] = [
  {
    is: (_, message) => message.startsWith('unsupported startup parameter'),
    advice:
      'PgBouncer refuses a setting that the service sends. Set ignore_startup_parameters = statement_timeout,lock_timeout,idle_in_transaction_session_timeout in its configuration',
  },
  LOST_STATEMENT,
  {
    is: (code, message) =>
      code === '3D000' || /^(?:no such database|database ".*" does not exist)/.test(message),
    advice: 'Create the database, or correct its name; PgBouncer must list it under [databases]',
  },
  {
    is: (code, message) =>
      message === 'SSL required' || (code === '28000' && message.endsWith('no encryption')),
    advice: 'The server accepts TLS alone. Add sslmode=verify-full to the URL',
  },
  {
    is: (code, message) =>
      code === '28P01' || code === '28000' || /authentication failed|no such user/.test(message),
    advice:
      'Correct the user and the password, and the lines of pg_hba.conf (auth_file of PgBouncer) for this user and address',
  },
  {
    is: (code, _, error) => code === '42501' && isConnectionRefused(error),
    advice: 'Let the user connect: GRANT CONNECT ON DATABASE',
  },
  {
    is: (code, _, error) => code === '55000' && isConnectionRefused(error),
    advice: 'Let the database accept connections: ALTER DATABASE with ALLOW_CONNECTIONS true',
  },
  {
    is: (_, message) => message === 'The server does not support SSL connections',
    advice:
      'The server offers no TLS. Set ssl = on (client_tls_sslmode in PgBouncer), or leave sslmode out of the URL on a network that is yours alone',
  },
  {
    is: (code) => code === 'ERR_TLS_CERT_ALTNAME_INVALID',
    advice: 'The certificate of the server must have the host name of the URL',
  },
  {
    is: (code) => code !== undefined && /CERT|SELF_SIGNED|LEAF_SIGNATURE/.test(code),
    advice:
      'The certificate of the server is not trusted. Name the file of its authority in sslrootcert',
  },
];

function refusalOf(error: unknown): Refusal | undefined {
  const [code, message] = [codeOf(error), reasonOf(error)];
  return REFUSALS.find(({ is }) => is(code, message, error));
}

/**
 * Returns true if the database refused a connection for a reason that only an operator can correct.
 * A start then fails at once instead of waiting.
 */
export function isRefusal(error: unknown): boolean {
  return refusalOf(error) !== undefined;
}

/**
 * Returns the fault of the database that may end by itself, such as a server that is still
 * starting. During such a fault, the service waits with its start. Returns undefined if there is no
 * such fault in the error or its cause, or if an operator must act.
 */
export function passingFault(error: unknown): unknown {
  const faults = faultsOf(error);
  return faults.some(isRefusal) ? undefined : faults.find(isDatabaseAway);
}

/** Returns an error and, if there is one, its cause. */
function faultsOf(error: unknown): unknown[] {
  return error instanceof Error && error.cause !== undefined ? [error, error.cause] : [error];
}

const WRITABLE_HOST =
  'The service needs the server that takes writes. Name all hosts in the URL, and add target_session_attrs=read-write';

/** The error of a start that cannot use its database, with a text for the operator. */
class DatabaseProblem extends Error {}

/**
 * Returns the error of a start that cannot use its database. The text names the variable, the
 * reason, what to do, and the page of the documentation.
 */
export function databaseProblem(what: string, cause: unknown): Error {
  const advice = faultsOf(cause).some(isReadOnly) ? WRITABLE_HOST : refusalOf(cause)?.advice;
  const text = `SVC_DATABASE_URL: ${what}: ${reasonOf(cause)}`;
  const whole = advice === undefined ? text : `${text}. ${advice}`;
  return new DatabaseProblem(`${whole} (${DATABASE_PAGE})`, { cause });
}

/**
 * Returns the error of a start that fails after it has connected. Some faults show only then: a
 * pooler that loses statements, a standby, or a server that is not the expected one. The server may
 * also become read-only, or go away, during the start. Any other cause is returned as it is.
 *
 * @param url the setting SVC_DATABASE_URL; undefined for the embedded server, whose faults have
 *   another remedy
 */
export function startProblem(cause: unknown, url?: string): unknown {
  if (cause instanceof DatabaseProblem) return cause;
  if (faultsOf(cause).some(isReadOnly)) {
    return databaseProblem('the database takes no writes', cause);
  }
  if (sqlStateOf(cause) === UNCONFIRMED) {
    return databaseProblem('the database cannot be confirmed', cause);
  }
  const isLost = LOST_STATEMENT.is(codeOf(cause), reasonOf(cause));
  const isUnusable = isLost || (url !== undefined && faultsOf(cause).some(isOutage));
  return isUnusable ? databaseProblem('the database cannot be used', cause) : cause;
}
