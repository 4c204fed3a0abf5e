import { Logger } from '@nestjs/common';
import { lockUsers } from '#domain/access/issuance/lock-order.repository.js';
import {
  idsOf,
  ON_RECORD_BATCH,
  withoutZeros,
  type EndedBatch,
  type LockedUser,
  type Revocable,
  type RevocationCause,
  type RevocationScope,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import type { AuditLog } from '#domain/audit/audit.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { afterCommit } from '#platform/database/statements/after-commit.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { isUuid } from '#platform/text/single-line.js';
import { IS_VALID_TOKEN, ROTATE_SCOPE } from './api-tokens.repository.js';

/**
 * The days for which an API token can still read data after its maker has lost the role of admin.
 */
const DAYS_AFTER_DEMOTION = 7;

/** The SQL condition that the only scope of a token `t` is the one to rotate SCIM tokens. */
const ONLY_ROTATES = fragment`t.scopes = ARRAY[${ROTATE_SCOPE}::text]`;

interface EndedToken {
  readonly id: string;
  readonly orgId: string;
  readonly name: string;
  readonly makerId: string;
}

const ENDED_COLUMNS = fragment`t.id, t.org_id AS "orgId", t.name, t.created_by AS "makerId"`;

const security = new Logger('security');

/**
 * Ends the API tokens of users whose access ends. The rows stay, so that another admin can make new
 * tokens that replace them. An audit event and a line of the log name each token.
 */
export class ApiTokenRevocation implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.apiTokens;
  /**
   * Every revocation event except two. After a changed e-mail address, the user is still an admin.
   * {@link DemotedApiTokens} acts on a demotion.
   */
  readonly revocationScopes: ReadonlySet<RevocationScope> = new Set([
    'account-deleted',
    'account-deactivated',
    'credentials-revoked',
    'domain-lost',
    'provider-withdrawn',
  ]);

  constructor(private readonly auditLog: AuditLog) {}

  async revoke(
    tx: EntityManager,
    users: readonly LockedUser[],
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    const ofUsers = fragment`t.created_by = ANY (${idsOf(users)}::uuid[])`;
    return withoutZeros({ api_tokens: await endTokens(tx, this.auditLog, ofUsers, cause) });
  }

  /** Counts the valid API tokens that a user made. */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const [row] = await sql<{ tokens: number }>(tx)`
      SELECT count(*)::int AS tokens FROM api_tokens t WHERE t.created_by = ${id} AND ${IS_VALID_TOKEN}`;
    return withoutZeros({ api_tokens: row?.tokens ?? 0 });
  }

  /**
   * Ends the tokens of all users, one batch for each call, after the database has lost commits. One
   * of the lost commits may have removed or demoted the maker of a token.
   */
  async revokeOnRecord(tx: EntityManager, cause: RevocationCause): Promise<EndedBatch> {
    const found = await sql<{ id: string; maker: string }>(tx)`
      SELECT t.id, t.created_by AS maker FROM api_tokens t WHERE t.revoked_at IS NULL ORDER BY t.id LIMIT ${ON_RECORD_BATCH}`;
    await lockUsers(
      tx,
      found.map(({ maker }) => maker),
    );
    const ids = found.map(({ id }) => id);
    const ended = await endTokens(tx, this.auditLog, fragment`t.id = ANY (${ids}::uuid[])`, cause);
    // The clock of a restored database server may be slow, so that expired tokens would be valid
    // again. So tokens that have already expired are revoked, too.
    await sql(tx)`
      UPDATE api_tokens SET revoked_at = now() WHERE id = ANY (${ids}::uuid[]) AND revoked_at IS NULL`;
    return {
      counts: withoutZeros({ api_tokens: ended }),
      next: found.length < ON_RECORD_BATCH ? undefined : '',
    };
  }
}

/**
 * Limits the API tokens of a user who loses the role of admin. The tokens can rotate no SCIM token
 * any more, and can read data only for some days. A token that can only rotate SCIM tokens ends at
 * once.
 */
export class DemotedApiTokens implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.demotedApiTokens;
  readonly revocationScopes: ReadonlySet<RevocationScope> = new Set(['admin-demoted']);
  /** Null, because {@link ApiTokenRevocation} ends all API tokens if the database lost commits. */
  readonly revokeOnRecord = null;

  constructor(private readonly auditLog: AuditLog) {}

  async revoke(
    tx: EntityManager,
    users: readonly LockedUser[],
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    const ofUsers = fragment`t.created_by = ANY (${idsOf(users)}::uuid[])`;
    const only = fragment`${ofUsers} AND ${ONLY_ROTATES}`;
    const ended = await endTokens(tx, this.auditLog, only, cause);
    const narrowed = await sql<EndedToken>(tx)`
      UPDATE api_tokens t
      SET maker_demoted_at = now(),
          expires_at = least(t.expires_at, now() + make_interval(days => ${DAYS_AFTER_DEMOTION}))
      WHERE ${ofUsers} AND t.maker_demoted_at IS NULL AND ${IS_VALID_TOKEN}
      RETURNING ${ENDED_COLUMNS}`;
    warn(
      tx,
      narrowed,
      `API tokens end within ${DAYS_AFTER_DEMOTION} days, because their maker is no admin any more. Another admin can make the successors`,
    );
    return withoutZeros({ api_tokens: ended, api_tokens_ending: narrowed.length });
  }

  /** Counts the tokens that a demotion ends at once, and those that it ends in some days. */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const [row] = await sql<{ ended: number; ending: number }>(tx)`
      SELECT count(*) FILTER (WHERE ${ONLY_ROTATES})::int AS ended,
             count(*) FILTER (WHERE NOT (${ONLY_ROTATES}) AND t.maker_demoted_at IS NULL)::int AS ending
      FROM api_tokens t WHERE t.created_by = ${id} AND ${IS_VALID_TOKEN}`;
    return withoutZeros({ api_tokens: row?.ended ?? 0, api_tokens_ending: row?.ending ?? 0 });
  }
}

/**
 * Ends the valid tokens that meet an SQL condition, with an audit event for each.
 *
 * @returns their number
 */
async function endTokens(
  tx: EntityManager,
  auditLog: AuditLog,
  condition: SqlFragment,
  { reason, revokedBy }: RevocationCause,
): Promise<number> {
  const ended = await sql<EndedToken>(tx)`
    UPDATE api_tokens t SET revoked_at = now(), is_orphan = true WHERE ${condition} AND ${IS_VALID_TOKEN}
    RETURNING ${ENDED_COLUMNS}`;
  for (const { id, orgId, name, makerId } of ended) {
    await auditLog.record(tx, {
      type: 'api_token_revoked',
      actorId: isUuid(revokedBy) ? revokedBy : null,
      subjectId: makerId,
      orgId,
      origin: { requestId: newUuid(), ip: undefined, userAgent: undefined },
      details: { api_token_id: id, name, reason, revoked_by: revokedBy },
    });
  }
  warn(
    tx,
    ended,
    'API tokens ended with the access of the admin who made them. Another admin can make the successors',
  );
  return ended.length;
}

/** Logs, once the transaction has committed, which tokens of which organization end. */
function warn(tx: EntityManager, tokens: readonly EndedToken[], text: string): void {
  const ofOrganizations = Map.groupBy(tokens, ({ orgId }) => orgId);
  afterCommit(tx, () => {
    for (const [orgId, ended] of ofOrganizations) {
      const apiTokens = ended.map(({ id, name, makerId }) => ({ id, name, makerId }));
      security.warn({ orgId, apiTokens }, text);
    }
  });
}
