import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { NOTICE_DAYS } from '#domain/audit/notices/account-notices.repository.js';
import { DYNAMIC_CLIENT_DAYS } from '#domain/oauth/clients/clients.repository.js';
import { DEAD_LETTER_DAYS } from '#domain/oauth/logout-notices/dead-letters.repository.js';
import { SIGN_IN_DAYS } from '#domain/oauth/logout-notices/sign-ins.repository.js';
import { COUNTED_DAYS } from '#domain/oauth/notice-figures/notice-counts.repository.js';
import { LOCK_MINUTES } from '#domain/oauth/grants/device-codes.repository.js';
import { SETTLED_SERIAL } from '#domain/ssh/serials/serials.repository.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { fixedSql, sql } from '#platform/database/statements/sql.js';

/**
 * The days for which audit events of a class are kept: SVC_AUTH_EVENTS_RETENTION_DAYS and
 * SVC_OAUTH_EVENTS_RETENTION_DAYS. Events of the class `admin` are kept forever.
 */
export interface Retention {
  readonly auth: number;
  readonly oauth: number;
}

/** A kind of expired rows. The fields are SQL text, and no value comes from a request. */
interface ExpiredRows {
  readonly table: string;
  readonly key: readonly string[];
  /**
   * The condition of an expired row. `$1` is the size of a batch. For audit events and SSH
   * certificates, `$2` is the number of days they are kept.
   */
  readonly where: string;
  /**
   * The column or expression by which the rows are sorted, which has an index. Rows with the lowest
   * values are deleted first.
   */
  readonly by?: string;
  readonly kept?: keyof Retention;
}

const PAST = { where: 'expires_at < now()', by: 'expires_at' };

/** The day (UTC) of a time, as the index of audit events by day has it. */
const dayOf = (time: string) => `((${time}) AT TIME ZONE 'UTC')::date`;

/**
 * Describes the expired audit events of a class. The class is part of the SQL text. It is never
 * `admin`, because events of that class are kept forever. The condition on the day is for the index
 * of requests, which begins with the day.
 */
function events(kept: keyof Retention): ExpiredRows {
  // Days of 24 hours, because a day of the time zone of the database may have 23. The days that an
  // export of the log states have 24, so that its verifier would name an event as removed.
  const end = 'now() - make_interval(hours => 24 * $2)';
  return {
    table: 'audit_events',
    key: ['id', 'class', 'created_at'],
    where: `class = '${kept}' AND class <> 'admin' AND created_at < ${end} AND ${dayOf('created_at')} <= ${dayOf(end)}`,
    by: dayOf('created_at'),
    kept,
  };
}

/**
 * Selects at most one batch of signals (security events for an application) whose stream does not
 * exist any more. It reads one index entry for each stream with signals, and not one for each
 * signal.
 */
const LOST_SIGNALS = `
  WITH RECURSIVE found AS (
    (SELECT e.stream_id FROM signal_events e ORDER BY e.stream_id LIMIT 1)
    UNION ALL
    SELECT n.stream_id FROM found f CROSS JOIN LATERAL (
      SELECT e.stream_id FROM signal_events e WHERE e.stream_id > f.stream_id ORDER BY e.stream_id LIMIT 1) n
  )
  SELECT l.id FROM found f CROSS JOIN LATERAL (
    SELECT e.id FROM signal_events e WHERE e.stream_id = f.stream_id ORDER BY e.id LIMIT $1) l
  WHERE NOT EXISTS (SELECT FROM signal_streams s WHERE s.id = f.stream_id) LIMIT $1`;

/** The kinds of expired rows, by the names with which the log counts deleted rows. */
const EXPIRED = {
  sessions: { table: 'sessions', key: ['id'], ...PAST },
  grants: { table: 'oauth_grants', key: ['id'], ...PAST },
  artifacts: { table: 'oauth_artifacts', key: ['model', 'id'], ...PAST },
  replays: { table: 'oauth_replays', key: ['key'], ...PAST },
  /**
   * Counts of the wrong codes that users typed to approve a device (RFC 8628). Counts of this age
   * no longer lock a user out.
   */
  userCodeTries: {
    table: 'oauth_user_code_tries',
    key: ['user_id'],
    where: `last_at < now() - make_interval(mins => ${LOCK_MINUTES})`,
  },
  clientSecrets: { table: 'oauth_client_secrets', key: ['id'], where: PAST.where },
  /**
   * Clients that registered themselves and were unused for so long that they may not act any more.
   */
  dynamicClients: {
    table: 'oauth_clients',
    key: ['id'],
    where: `kind = 'dynamic' AND last_used_at < now() - make_interval(days => ${DYNAMIC_CLIENT_DAYS})`,
    by: 'last_used_at',
  },
  /**
   * GitHub tokens that have expired. If a token waits in the queue of revocations, a worker ends it
   * and writes an audit event. If no worker does so for a day, the token is deleted without an
   * event.
   */
  githubTokens: {
    table: 'github_tokens',
    key: ['id'],
    where:
      "expires_at < now() AND (next_attempt_at IS NULL OR expires_at < now() - interval '1 day')",
    by: 'expires_at',
  },
  githubDeliveries: { table: 'github_deliveries', key: ['id'], ...PAST },
  /**
   * Keys of issuers that are not published any more. The rows also hold the encrypted private keys.
   */
  issuerKeys: {
    table: 'organization_issuer_keys',
    key: ['kid'],
    where: 'published_until < now()',
    by: 'published_until',
  },
  /**
   * The groups of hosts that expired SSH certificates opened. They are needed only to revoke a
   * certificate that is still valid.
   */
  sshCertificateGroups: {
    table: 'ssh_certificate_groups',
    key: ['target_id', 'serial'],
    where: 'valid_before < now()',
    by: 'valid_before',
  },
  /**
   * Certificates that expired longer ago than audit events of the class `oauth` are kept, and at
   * least a day ago. Only the lowest serials are looked at, because they were issued first. The
   * highest serials stay, because after a failover they show which serials were used.
   */
  sshCertificates: {
    table: 'ssh_certificates',
    key: ['serial'],
    where: `serial = ANY (ARRAY(SELECT c.serial FROM ssh_certificates c ORDER BY c.serial LIMIT $1))
      AND valid_before < now() - make_interval(days => greatest($2, 1)) AND serial < (${SETTLED_SERIAL})`,
    by: 'serial',
    kept: 'oauth',
  },
  spentTokens: { table: 'spent_tokens', key: ['id'], ...PAST },
  /**
   * Records of accepted SAML assertions, which prevent a replay. The SAML request has expired, so
   * no process would accept the assertion again.
   */
  samlAssertions: { table: 'saml_assertions', key: ['id'], ...PAST },
  /**
   * Rate-limit buckets that are full again and whose bookings (times that were reserved for a
   * retry) have expired. Such a bucket equals a new one.
   */
  rateLimits: {
    table: 'rate_limits',
    key: ['bucket'],
    where: "tat < now() AND (slots = '{}' OR tat < now() - interval '1 minute')",
  },
  /** SCIM writes that were refused, and that the identity provider has not repeated for 30 days. */
  scimRefusals: {
    table: 'scim_refusals',
    key: ['token_id', 'resource_type', 'resource_id', 'reason'],
    where: "last_at < now() - interval '30 days'",
    by: 'last_at',
  },
  /**
   * Sign-ins of users to applications, if they are so old that no session that an application
   * opened for them can still exist.
   */
  clientSignIns: {
    table: 'client_sign_ins',
    key: ['sid', 'client_id'],
    where: `last_at < now() - make_interval(days => ${SIGN_IN_DAYS})`,
    by: 'last_at',
  },
  /** Logout notices to applications that could not be sent, and that no admin sent again. */
  deadLetters: {
    table: 'logout_notices',
    key: ['id'],
    where: `dead_at < now() - make_interval(days => ${DEAD_LETTER_DAYS})`,
    by: 'dead_at',
  },
  /**
   * The daily numbers of sent and failed notices, such as logouts, of days that no statistic shows
   * any more.
   */
  noticeCounts: {
    table: 'notice_counts',
    key: ['client_id', 'kind', 'day'],
    where: `day < current_date - ${COUNTED_DAYS}`,
    by: 'day',
  },
  /**
   * Signals (security events for an application) that could not be sent, and that no admin sent
   * again.
   */
  deadSignals: {
    table: 'signal_events',
    key: ['id'],
    where: `dead_at < now() - make_interval(days => ${DEAD_LETTER_DAYS})`,
    by: 'dead_at',
  },
  /** Signals whose stream does not exist any more, so that no replica sends them. */
  lostSignals: {
    table: 'signal_events',
    key: ['id'],
    where: `id = ANY (ARRAY(${LOST_SIGNALS}))`,
  },
  /**
   * Audit events that an event receiver of an organization did not accept, and that no admin sent
   * again.
   */
  undeliveredEvents: {
    table: 'undelivered_events',
    key: ['id'],
    where: `dead_at < now() - make_interval(days => ${DEAD_LETTER_DAYS})`,
    by: 'dead_at',
  },
  /**
   * Notices to users about their accounts, such as of a new security key, that stayed unread for
   * too long.
   */
  accountNotices: {
    table: 'account_notices',
    key: ['user_id', 'id'],
    where: `created_at < now() - make_interval(days => ${NOTICE_DAYS})`,
    by: 'created_at',
  },
  /** Notices to users who do not exist any more. */
  lostNotices: {
    table: 'account_notices',
    key: ['user_id', 'id'],
    where: 'NOT EXISTS (SELECT FROM users u WHERE u.id = account_notices.user_id)',
  },
  authEvents: events('auth'),
  oauthEvents: events('oauth'),
} as const satisfies Record<string, ExpiredRows>;

/** A kind of expired rows, such as `sessions` or `authEvents`. */
export type ExpiredKind = keyof typeof EXPIRED;

/**
 * Every kind of expired rows, in the order of the clean-up: sessions, for example, come before the
 * grants that depend on them.
 */
export const EXPIRED_KINDS = Object.keys(EXPIRED) as readonly ExpiredKind[];

/**
 * Takes the lock of the clean-up. Returns false if another process holds it. PostgreSQL keeps the
 * lock for the connection, until the connection releases it or ends.
 *
 * @param tx the manager of one connection, on which {@link unlockCleanUp} must release the lock
 */
export async function lockCleanUp(tx: EntityManager): Promise<boolean> {
  const [row] = await sql<{ taken: boolean }>(tx)`
    SELECT pg_try_advisory_lock(${ADVISORY_LOCKS.cleanUp}) AS taken`;
  return row?.taken ?? false;
}

/** Releases the lock of the clean-up. The connection must be the one that took the lock. */
export async function unlockCleanUp(tx: EntityManager): Promise<void> {
  await sql(tx)`SELECT pg_advisory_unlock(${ADVISORY_LOCKS.cleanUp})`;
}

/**
 * Deletes a batch of expired rows of a kind. It skips rows that another transaction has locked: the
 * next clean-up deletes them.
 *
 * @returns the number of deleted rows
 */
export async function deleteExpired(
  tx: EntityManager,
  kind: ExpiredKind,
  most: number,
  retention: Retention,
): Promise<number> {
  const { table, key, where, by, kept }: ExpiredRows = EXPIRED[kind];
  const [row] = await fixedSql<{ n: number }>(
    tx,
    `WITH expired AS MATERIALIZED (
       SELECT ${key.join(', ')} FROM ${table} WHERE ${where}${by ? ` ORDER BY ${by}` : ''} LIMIT $1 FOR UPDATE SKIP LOCKED
     ), gone AS (
       DELETE FROM ${table} t USING expired e WHERE ${key.map((column) => `t.${column} = e.${column}`).join(' AND ')}
       RETURNING 1
     )
     SELECT count(*)::int AS n FROM gone`,
    kept ? [most, retention[kept]] : [most],
  );
  return row?.n ?? 0;
}
