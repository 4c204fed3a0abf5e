import {
  AUDIT_COLUMNS,
  auditOfUser,
  auditValues,
  type RequestOfUser,
} from '#domain/access/issuance/audit-of-user.repository.js';
import { IssuanceKind, type OutcomeRow } from '#domain/access/issuance/issuance.repository.js';
import {
  signingKeyOf,
  type TokenIssuer,
} from '#domain/organizations/issuers/signing-key.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The record of a token that AWS exchanges for credentials. It is written before the token is
 * signed, so that no token exists without its record.
 */
export interface AwsTokenRequest extends RequestOfUser {
  readonly sessionId: string;
  readonly userId: string;
  /**
   * The e-mail address that the token names as its subject. No token is issued if the user has
   * another e-mail address by now.
   */
  readonly email: string;
  /** The id of the token (its claim `jti`). */
  readonly tokenId: string;
  readonly roleArn: string | null;
  /** True for a token that asks for a role session that can only read. */
  readonly isReadOnly: boolean;
  readonly sourceIdentity: string;
  /**
   * The lifetime of the token in seconds. If the session ends earlier, the token expires with the
   * session.
   */
  readonly lifetime: number;
}

/** A token that the database has recorded, so that it may be signed. */
export interface RecordedAwsToken {
  /** The id of the user's organization. */
  readonly orgId: string;
  /** The time of the issuance, in seconds since 1970. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  /**
   * The issuer of the organization, and its key that signs the token; null if the service's own
   * issuer issues the token.
   */
  readonly tokenIssuer: TokenIssuer | null;
}

interface AwsTokenRow extends OutcomeRow {
  readonly org_id: string;
  readonly issued_at: number;
  readonly expires_at: number;
  readonly token_issuer: TokenIssuer | null;
}

/**
 * Issues tokens that AWS exchanges for credentials. A token needs a session that a security key
 * verified. The user must be a member of an organization, and the e-mail address must still be the
 * one in the token. If the access of the user ends before the issuance, the session is gone and no
 * token is issued. If the access ends after the issuance, the token cannot be revoked, but it
 * expires within minutes.
 */
export const AWS_TOKEN = new IssuanceKind<AwsTokenRequest, RecordedAwsToken, AwsTokenRow>(
  {
    requires: {
      user: 'of the request',
      session: { of: 'request', where: fragment`s.level = 'verified'` },
      reach: 'role',
    },
    columns: {
      user_id: 'uuid',
      session_id: 'uuid',
      email: 'text',
      token_id: 'uuid',
      role_arn: 'text',
      is_read_only: 'boolean',
      source_identity: 'text',
      lifetime: 'int',
      ...AUDIT_COLUMNS,
    },
    goneIf: fragment`a.email IS DISTINCT FROM k.email OR s.expires_at < now() + interval '1 second'`,
    computed: fragment`
      date_trunc('second', now()) AS issued_at,
      date_trunc('second', least(s.expires_at, now() + make_interval(secs => k.lifetime))) AS token_ends,
      ${signingKeyOf(fragment`a.org_id`)} AS token_issuer`,
    issuedIf: () =>
      fragment`i.org_id IS NOT NULL AND (i.token_issuer IS NULL OR i.token_issuer ->> 'kid' IS NOT NULL)`,
    written: auditOfUser(
      fragment`'aws_credential'`,
      fragment`jsonb_build_object('jti', i.token_id, 'role_arn', i.role_arn,
          'source_identity', i.source_identity, 'expires_at', i.token_ends)
        || CASE WHEN i.is_read_only THEN jsonb_build_object('read_only', true) ELSE '{}'::jsonb END
        || CASE WHEN i.token_issuer IS NULL THEN '{}'::jsonb
                ELSE jsonb_build_object('issuer_label', i.token_issuer -> 'label', 'kid', i.token_issuer -> 'kid') END`,
    ),
    audited: undefined,
    returned: fragment`i.org_id, extract(epoch FROM i.issued_at)::float8 AS issued_at,
      extract(epoch FROM i.token_ends)::float8 AS expires_at, i.token_issuer`,
  },
  (request) => ({
    user_id: request.userId,
    session_id: request.sessionId,
    email: request.email,
    token_id: request.tokenId,
    role_arn: request.roleArn,
    is_read_only: request.isReadOnly,
    source_identity: request.sourceIdentity,
    lifetime: request.lifetime,
    ...auditValues(request),
  }),
  (row) => ({
    orgId: row.org_id,
    issuedAt: row.issued_at,
    expiresAt: row.expires_at,
    tokenIssuer: row.token_issuer,
  }),
);

/** Returns true if the user is a member of an organization. */
export async function hasOrganization(tx: EntityManager, userId: string): Promise<boolean> {
  const found = await sql<{ id: string }>(tx)`
    SELECT id FROM users WHERE id = ${userId} AND org_id IS NOT NULL`;
  return found.length === 1;
}
