import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { newUuid } from '#platform/clock/random.js';
import { sql } from '#platform/database/statements/sql.js';
import type { IssuerTenant } from '../tenancy.js';

/** An identity provider, with its tenant, through which members of an organization may sign in. */
export interface AcceptedProvider extends IssuerTenant {
  readonly id: string;
  /** True for the provider through which the founder of the organization signed in. */
  readonly founding: boolean;
  /** The id of the admin who allowed the provider; null for the founding provider. */
  readonly addedBy: string | null;
  readonly createdAt: Date;
}

interface Row {
  id: string;
  issuer: string;
  tenant: string;
  founding: boolean;
  added_by: string | null;
  created_at: Date;
}

/**
 * Locks the list of providers of an organization until the transaction ends, so that acts of admins
 * on it happen one after another. If two admins withdraw a provider, the second act then counts the
 * providers that the first one left. A transaction takes this lock before every row lock.
 */
export async function lockProviders(tx: EntityManager, orgId: string): Promise<void> {
  await sql(tx)`SELECT pg_advisory_xact_lock(hashtextextended('providers ' || ${orgId}, 0))`;
}

/**
 * Makes PostgreSQL plan each statement of the transaction for its actual values. A plan that was
 * made for few users would be slow for many, because it compares every user with every identity.
 */
export async function planForManyUsers(tx: EntityManager): Promise<void> {
  await sql(tx)`SET LOCAL plan_cache_mode = force_custom_plan`;
}

/** Lists the providers that an organization accepts, the oldest first. */
export async function listProviders(tx: EntityManager, orgId: string): Promise<AcceptedProvider[]> {
  const rows = await sql<Row>(tx)`
    SELECT id, issuer, tenant, founding, added_by, created_at FROM organization_providers
    WHERE org_id = ${orgId} ORDER BY created_at, id`;
  return rows.map(acceptedProvider);
}

/**
 * Locks a provider of an organization until the transaction ends, so that a sign-in through it
 * waits. When this call returns, no earlier sign-in through it is still running. Returns undefined
 * for an id of another organization.
 */
export async function lockProvider(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<AcceptedProvider | undefined> {
  const [row] = await sql<Row>(tx)`
    SELECT id, issuer, tenant, founding, added_by, created_at FROM organization_providers
    WHERE org_id = ${orgId} AND id = ${id} FOR UPDATE`;
  return row && acceptedProvider(row);
}

/**
 * Adds a provider to those that an organization accepts. Returns undefined if the organization
 * accepts it already.
 */
export async function insertProvider(
  tx: EntityManager,
  orgId: string,
  { issuer, tenant }: IssuerTenant,
  addedBy: string,
): Promise<AcceptedProvider | undefined> {
  const [row] = await sql<Row>(tx)`
    INSERT INTO organization_providers (id, org_id, issuer, tenant, founding, added_by)
    VALUES (${newUuid()}, ${orgId}, ${issuer}, ${tenant}, false, ${addedBy})
    ON CONFLICT DO NOTHING
    RETURNING id, issuer, tenant, founding, added_by, created_at`;
  return row && acceptedProvider(row);
}

/** Deletes a provider from those that an organization accepts. */
export async function deleteProvider(tx: EntityManager, orgId: string, id: string): Promise<void> {
  await sql(tx)`DELETE FROM organization_providers WHERE org_id = ${orgId} AND id = ${id}`;
}

function acceptedProvider(row: Row): AcceptedProvider {
  return {
    id: row.id,
    issuer: row.issuer,
    tenant: row.tenant,
    founding: row.founding,
    addedBy: row.added_by,
    createdAt: row.created_at,
  };
}
