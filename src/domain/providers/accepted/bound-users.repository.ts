import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { IssuerTenant } from '../tenancy.js';

/**
 * Counts the members of an organization by the issuer and tenant of the identities that they are
 * bound to.
 */
export function countBoundUsers(
  tx: EntityManager,
  orgId: string,
): Promise<(IssuerTenant & { readonly users: number })[]> {
  return sql<IssuerTenant & { users: number }>(tx)`
    SELECT i.issuer, i.tenant, count(DISTINCT u.id)::int AS users
    FROM users u JOIN identities i ON i.user_id = u.id
    WHERE u.org_id = ${orgId}
    GROUP BY i.issuer, i.tenant`;
}

/** Lists the members of an organization who are bound to an identity of an issuer and tenant. */
export async function listBoundUsers(
  tx: EntityManager,
  orgId: string,
  { issuer, tenant }: IssuerTenant,
): Promise<string[]> {
  const rows = await sql<{ id: string }>(tx)`
    SELECT u.id FROM users u
    WHERE u.org_id = ${orgId}
      AND EXISTS (SELECT FROM identities i
                  WHERE i.user_id = u.id AND i.issuer = ${issuer} AND i.tenant = ${tenant})`;
  return rows.map(({ id }) => id);
}

/**
 * Returns those of the given users who could not sign in without the given provider. They are bound
 * to no identity of another provider that the organization accepts.
 */
export function withoutOtherProvider(
  tx: EntityManager,
  orgId: string,
  { issuer, tenant }: IssuerTenant,
  userIds: readonly string[],
): Promise<{ readonly id: string }[]> {
  return sql<{ id: string }>(tx)`
    SELECT u.id FROM users u
    WHERE u.id = ANY (${userIds}::uuid[]) AND u.org_id = ${orgId}
      AND NOT EXISTS (
        SELECT FROM identities i
        JOIN organization_providers p ON p.issuer = i.issuer AND p.tenant = i.tenant
        WHERE i.user_id = u.id AND p.org_id = ${orgId} AND (p.issuer, p.tenant) <> (${issuer}, ${tenant}))
    ORDER BY u.id`;
}

/**
 * The facts about the removal of users' bindings to one provider, for the audit events. The
 * transaction has locked the rows of the users.
 */
export interface EndOfBindings extends IssuerTenant {
  readonly orgId: string;
  readonly userIds: readonly string[];
  /** The ids of those users whose access ended, because they have no other provider. */
  readonly ended: readonly string[];
  readonly admin: string;
  readonly origin: AuditOrigin;
}

/**
 * Removes the bindings of locked users to identities of an issuer and tenant, with an audit event
 * for each user.
 */
export async function unbindUsers(tx: EntityManager, end: EndOfBindings): Promise<void> {
  const { issuer, tenant, userIds } = end;
  await sql(tx)`
    DELETE FROM identities
    WHERE user_id = ANY (${userIds}::uuid[]) AND issuer = ${issuer} AND tenant = ${tenant}`;
  const ended = new Set(end.ended);
  await sql(tx)`${recordAudit(
    {
      id: fragment`e.event_id`,
      type: 'identity_unbound',
      actorId: end.admin,
      subjectId: fragment`e.user_id`,
      orgId: end.orgId,
      origin: end.origin,
      details: fragment`jsonb_build_object('issuer', ${issuer}::text, 'tenant', ${tenant}::text,
        'access_ended', e.ended)`,
    },
    fragment`
      FROM unnest(${userIds}::uuid[], ${userIds.map((id) => ended.has(id))}::boolean[],
                  ${userIds.map(() => newUuid())}::uuid[]) AS e (user_id, ended, event_id)`,
  )}`;
}
