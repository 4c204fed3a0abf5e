import {
  AUDIT_COLUMNS,
  auditOfUser,
  auditValues,
  type RequestOfUser,
} from '#domain/access/issuance/audit-of-user.repository.js';
import type { GitHubPermissions } from '../app/answers.js';
import { ISSUED } from '#domain/access/issuance/issuance-statement.repository.js';
import { IssuanceKind, type OutcomeRow } from '#domain/access/issuance/issuance.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * A token that GitHub issued for a user. It is stored encrypted until it expires or is revoked,
 * because GitHub revokes a token only for a request with the token itself.
 */
export interface SealedToken {
  readonly id: string;
  readonly userId: string;
  readonly orgId: string;
  readonly sessionId: string;
  readonly installationId: number;
  readonly owner: string;
  readonly sealed: string;
  readonly expiresAt: Date;
  readonly repositories: readonly string[] | null;
  readonly permissions: GitHubPermissions;
}

/** An encrypted token, with the origin and the audit id of the user's request for it. */
export interface GitHubTokenRequest extends SealedToken, RequestOfUser {}

/** The result of recording a token. Only a recorded token may be given to the user. */
export interface RecordedToken {
  readonly expiresAt: Date;
}

interface TokenRow extends OutcomeRow {
  /** The end of the token, in milliseconds since 1970. */
  readonly ends: number;
}

/**
 * Records a GitHub token that is issued to a user. A token needs a session that a security key
 * verified, and an installation that the user's organization has linked. The statement locks the
 * session and the installation. If the session will end before the token, the token is queued now
 * for revocation at the end of the session.
 */
export const GITHUB_TOKEN = new IssuanceKind<GitHubTokenRequest, RecordedToken, TokenRow>(
  {
    requires: {
      user: 'of the request',
      session: { of: 'request', where: fragment`s.level = 'verified'` },
      installation: true,
      reach: 'installation',
    },
    columns: {
      user_id: 'uuid',
      session_id: 'uuid',
      id: 'uuid',
      installation_id: 'bigint',
      owner: 'text',
      sealed: 'text',
      ends: 'timestamptz',
      repositories: 'text[]',
      permissions: 'jsonb',
      org: 'uuid',
      ...AUDIT_COLUMNS,
    },
    goneIf: fragment`a.org_id IS DISTINCT FROM k.org`,
    computed: fragment`s.expires_at < k.ends AS is_cut`,
    issuedIf: () =>
      fragment`i.is_installed AND (i.repositories IS NOT NULL OR i.gives_all_repositories)`,
    written: fragment`
      INSERT INTO github_tokens (id, installation_id, owner, user_id, org_id, session_id, sealed, repositories, permissions,
                                 expires_at, next_attempt_at, revoke_reason, revoked_by)
      SELECT i.id, i.installation_id, i.owner, i.user_id, i.org_id, i.session_id, i.sealed, i.repositories, i.permissions,
             i.ends, CASE WHEN i.is_cut THEN i.session_ends END, CASE WHEN i.is_cut THEN 'session ended' END,
             CASE WHEN i.is_cut THEN 'session' END
      ${ISSUED}`,
    audited: auditOfUser(
      fragment`'github_credential'`,
      fragment`jsonb_build_object('token_id', i.id, 'owner', i.owner, 'installation_id', i.installation_id,
          'repositories', i.repositories, 'permissions', i.permissions, 'expires_at', i.ends)`,
    ),
    returned: fragment`extract(epoch FROM least(i.ends, i.session_ends))::float8 * 1000 AS ends`,
  },
  (request) => ({
    user_id: request.userId,
    session_id: request.sessionId,
    org: request.orgId,
    id: request.id,
    installation_id: request.installationId,
    owner: request.owner,
    sealed: request.sealed,
    ends: request.expiresAt,
    repositories: request.repositories,
    permissions: request.permissions,
    ...auditValues(request),
  }),
  ({ ends }) => ({ expiresAt: new Date(ends) }),
);

/**
 * Returns true if the organization of a user owns the domain of the user's e-mail address. The
 * caller checks this before it asks GitHub for a token, so that GitHub issues no token that the
 * user cannot get.
 */
export async function ownsOwnDomain(tx: EntityManager, userId: string): Promise<boolean> {
  const [row] = await sql<{ is_own: boolean }>(tx)`
    SELECT is_own_address(org_id, email) AS is_own FROM users WHERE id = ${userId}`;
  return row?.is_own ?? false;
}

/**
 * Queues for revocation a token that GitHub issued but no user gets. For example, the session or
 * the link of the installation ended while GitHub issued the token.
 */
export async function queueUndelivered(tx: EntityManager, token: SealedToken): Promise<void> {
  await sql(tx)`
    INSERT INTO github_tokens (id, installation_id, owner, user_id, org_id, session_id, sealed, repositories, permissions,
                               expires_at, next_attempt_at, revoke_reason, revoked_by)
    VALUES (${token.id}, ${token.installationId}, ${token.owner}, ${token.userId}, ${token.orgId}, ${token.sessionId},
            ${token.sealed}, ${token.repositories}, ${JSON.stringify(token.permissions)}, ${token.expiresAt}, '-infinity',
            'not delivered', 'issuance')`;
}
