import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
import { ISSUED } from '#domain/access/issuance/issuance-statement.repository.js';
import { IssuanceKind } from '#domain/access/issuance/issuance.repository.js';
import { byteaText, fragment } from '#platform/database/statements/sql.js';
import { resourceKey } from '../clients/resource-key.js';
import type { Artifact } from './artifact.js';

/** The facts for the audit event about an issued token. */
export interface TokenAudit {
  readonly auditId: string;
  readonly origin: AuditOrigin;
  readonly details: object;
  /**
   * The second audit event of a token exchange (RFC 8693), which names the token that was
   * exchanged.
   */
  readonly exchange?: { readonly auditId: string; readonly details: object };
}

/** A token to issue, with the facts for its audit event. */
export interface TokenRequest {
  readonly token: Artifact;
  readonly audit: TokenAudit;
}

/**
 * A token to issue for a Kubernetes cluster. The token also ends if the registration of the cluster
 * is removed.
 */
export interface ClusterTokenRequest extends TokenRequest {
  readonly applicationId: string;
}

const COLUMNS = {
  model: 'text',
  id: 'bytea',
  payload: 'jsonb',
  grant_id: 'bytea',
  client_id: 'text',
  user_id: 'uuid',
  expires_in: 'int',
  audit_id: 'uuid',
  request_id: 'text',
  ip: 'inet',
  user_agent: 'text',
  details: 'jsonb',
  exchange_id: 'uuid',
  exchange_details: 'jsonb',
  audience_key: 'text',
} as const;

function columnsOf({ token, audit }: TokenRequest): object {
  const { auditId, origin, details, exchange } = audit;
  return {
    model: token.model,
    id: byteaText(token.id),
    payload: token.payload,
    grant_id: token.grantId && byteaText(token.grantId),
    client_id: token.clientId,
    user_id: token.userId,
    expires_in: token.expiresIn,
    audit_id: auditId,
    request_id: origin.requestId,
    ip: origin.ip,
    user_agent: origin.userAgent,
    details,
    exchange_id: exchange?.auditId,
    exchange_details: exchange?.details,
    audience_key: token.audience === undefined ? undefined : resourceKey(token.audience),
  };
}

/**
 * The SQL condition that no organization has registered the audience of a token. Only svc-cli may
 * exchange tokens for a registered resource, and only for members of the organization that
 * registered it. The audience is compared in two forms: as `resourceKey` normalized it, and as the
 * database function `resource_key` does. The two differ for some spellings.
 */
const IS_FREE_AUDIENCE = fragment`NOT EXISTS (
  SELECT FROM oauth_clients r
  WHERE r.kind = 'kubernetes' AND resource_key(r.resource) IN (i.audience_key, resource_key(i.payload ->> 'aud')))`;

/** The rows that must exist and be valid for each token of a user. */
const OF_USER = { user: 'of the request', client: true, grant: 'required' } as const;
const ORIGIN = fragment`i.request_id, i.ip, i.user_agent`;
const CLIENT_NAME = fragment`CASE WHEN i.details ->> 'client_id' = i.client_id THEN i.client_name END`;

const AUDITED_OF_USER = recordAudit(
  {
    id: fragment`e.id`,
    type: fragment`e.type`,
    actorId: fragment`i.user_id`,
    subjectId: fragment`i.user_id`,
    orgId: fragment`i.org_id`,
    origin: ORIGIN,
    details: fragment`e.details`,
    actorEmail: fragment`i.user_email`,
    subjectEmail: fragment`i.user_email`,
    clientName: CLIENT_NAME,
  },
  fragment`
    FROM decided i CROSS JOIN LATERAL (VALUES
      (i.audit_id, 'oauth_token_issued', i.details), (i.exchange_id, 'token_exchange', i.exchange_details)
    ) AS e (id, type, details)
    WHERE i.is_issued AND e.id IS NOT NULL`,
);

/**
 * Issues an access token of a user to a client. The token depends on a grant, and the grant on a
 * session of the user.
 */
export const USER_TOKEN = new IssuanceKind<TokenRequest, true>(
  {
    requires: {
      ...OF_USER,
      session: { of: 'grant', where: fragment`s.level <> 'bootstrap'` },
      reach: 'client',
    },
    columns: COLUMNS,
    issuedIf: () => IS_FREE_AUDIENCE,
    written: fragment`
      INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, expires_at)
      SELECT i.model, i.id, i.payload, i.grant_id, i.client_id, i.user_id, now() + make_interval(secs => i.expires_in)
      ${ISSUED}`,
    audited: AUDITED_OF_USER,
  },
  columnsOf,
  () => true,
);

/**
 * Issues a token of svc-cli for a Kubernetes cluster. A security key must have verified the
 * session. The cluster must be registered in the organization of the user, and the token ends with
 * the registration.
 */
export const CLUSTER_TOKEN = new IssuanceKind<ClusterTokenRequest, true>(
  {
    requires: {
      ...OF_USER,
      cluster: true,
      session: { of: 'grant', where: fragment`s.level = 'verified'` },
      reach: 'cluster',
    },
    columns: { ...COLUMNS, application_id: 'text' },
    written: fragment`
      INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, application_id, expires_at)
      SELECT i.model, i.id, i.payload, i.grant_id, i.client_id, i.user_id, i.application_id,
             now() + make_interval(secs => i.expires_in)
      ${ISSUED}`,
    audited: AUDITED_OF_USER,
  },
  (request) => ({ ...columnsOf(request), application_id: request.applicationId }),
  () => true,
);

/**
 * Issues a token to a client itself, not for a user. If the client has an owner, the owner must
 * have a security key and must still be allowed to get credentials.
 */
export const CLIENT_TOKEN = new IssuanceKind<TokenRequest, true>(
  {
    requires: { user: 'owner of the client', client: true },
    columns: COLUMNS,
    issuedIf: () => IS_FREE_AUDIENCE,
    written: fragment`
      INSERT INTO oauth_artifacts (model, id, payload, client_id, expires_at)
      SELECT i.model, i.id, i.payload, i.client_id, now() + make_interval(secs => i.expires_in) ${ISSUED}`,
    audited: recordAudit(
      {
        id: fragment`i.audit_id`,
        type: fragment`'oauth_token_issued'`,
        orgId: fragment`i.client_org_id`,
        origin: ORIGIN,
        details: fragment`i.details`,
        clientName: CLIENT_NAME,
      },
      ISSUED,
    ),
  },
  columnsOf,
  () => true,
);
