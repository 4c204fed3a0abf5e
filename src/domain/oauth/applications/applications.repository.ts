/**
 * The applications that users registered. A user finds only the applications that the user may
 * manage: the own applications and, for an admin, those of the organization.
 */

import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import { redirectUrisOf } from '../clients/clients.repository.js';
import { hostAndParents, resourceKey } from '../clients/resource-key.js';

/**
 * An application that a user registered, or a Kubernetes cluster that an admin registered, as the
 * users who may manage it see it.
 */
export interface ClientApplication {
  readonly id: string;
  /** The client metadata of RFC 7591 §2, without a secret. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /**
   * The id of the user who registered the application; null for a cluster, which belongs to the
   * organization.
   */
  readonly ownerId: string | null;
  readonly orgId: string | null;
  /** The audience of the tokens for a cluster (RFC 8707 §2); null for any other application. */
  readonly resource: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /**
   * The time of the last use of the application. It is accurate to the day, so that not each use
   * has to write the row.
   */
  readonly lastUsedAt: Date;
  /**
   * The time at which an admin approved the application for all members. Null without an approval,
   * and for a cluster, which only an admin registers.
   */
  readonly approvedAt: Date | null;
  /** The redirect URIs for which the admin approved the application; null without an approval. */
  readonly approvedUris: readonly string[] | null;
}

/** Facts that a list of applications shows in addition to a {@link ClientApplication}. */
export interface ApplicationFacts {
  /** The e-mail address of the owner; null if there is no owner, or the owner has no address. */
  readonly ownerEmail: string | null;
  /**
   * The time at which the last secret expires; null if there is no secret, or if one never expires.
   */
  readonly secretsEnd: Date | null;
}

/**
 * Returns a text that changes with every change of an application. A page or program compares it to
 * notice a change by another user.
 */
export function applicationVersion({ id, updatedAt, approvedAt }: ClientApplication): string {
  const approval = approvedAt === null ? '' : ` ${approvedAt.toISOString()}`;
  return `${id} ${updatedAt.toISOString()}${approval}`;
}

/** The user who manages an application: its owner, or an admin of the organization. */
export interface ApplicationManager {
  readonly userId: string;
  readonly orgId: string | null;
  readonly isAdmin: boolean;
  /**
   * True for an admin of the organization, even if the scope of the access token in the request
   * does not include the acts of admins.
   */
  readonly isOrgAdmin: boolean;
  /** The id of the session of the request. */
  readonly sessionId: string;
}

interface Row {
  id: string;
  metadata: Record<string, unknown>;
  owner_id: string | null;
  org_id: string | null;
  resource: string | null;
  created_at: Date;
  updated_at: Date;
  last_used_at: Date;
  approved_at: Date | null;
  approved_uris: string[] | null;
}

/** A Kubernetes cluster to register: an application of kind `kubernetes`. */
export interface NewCluster {
  readonly id: string;
  readonly orgId: string;
  readonly resource: string;
  readonly metadata: object;
}

/**
 * Lists the applications that a user may manage, in the order of their ids. It returns at most
 * `limit` of those with an id above `after`.
 */
export async function listApplications(
  tx: EntityManager,
  { userId, orgId, isAdmin }: ApplicationManager,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<ClientApplication[]> {
  // An admin sees all applications of the organization. An index on `org_id` and `id` has them in
  // the order of the list, so that no page sorts all of them. A user who is no admin sees only the
  // own applications. These are at most 50, so that sorting them costs little.
  const rows =
    isAdmin && orgId !== null
      ? await sql<Row>(tx)`
    SELECT id, metadata, owner_id, org_id, resource, created_at, updated_at, last_used_at,
           approved_at, approved_uris
    FROM oauth_clients
    WHERE kind IN ('application', 'kubernetes') AND org_id BETWEEN ${orgId} AND ${orgId}
      AND (org_id, id) > (${orgId}::uuid, ${after})
    ORDER BY org_id, id LIMIT ${limit}`
      : await sql<Row>(tx)`
    WITH own AS MATERIALIZED (
      SELECT id, metadata, owner_id, org_id, resource, created_at, updated_at, last_used_at,
           approved_at, approved_uris
      FROM oauth_clients
      WHERE owner_id = ${userId} AND kind = 'application' AND org_id IS NOT DISTINCT FROM ${orgId}::uuid
    )
    SELECT id, metadata, owner_id, org_id, resource, created_at, updated_at, last_used_at,
           approved_at, approved_uris
    FROM own WHERE id > ${after} ORDER BY id LIMIT ${limit}`;
  return rows.map(application);
}

/**
 * Reads the additional facts about some applications. The keys of the returned map are the ids of
 * the applications.
 */
export async function listApplicationFacts(
  tx: EntityManager,
  ids: readonly string[],
): Promise<ReadonlyMap<string, ApplicationFacts>> {
  const rows = await sql<ApplicationFacts & { id: string }>(tx)`
    SELECT c.id, u.email AS "ownerEmail", s.ends AS "secretsEnd"
    FROM oauth_clients c
    LEFT JOIN users u ON u.id = c.owner_id
    CROSS JOIN LATERAL (
      SELECT CASE WHEN bool_and(expires_at IS NOT NULL) THEN max(expires_at) END AS ends
      FROM oauth_client_secrets
      WHERE client_id = c.id AND (expires_at IS NULL OR expires_at > now())) s
    WHERE c.id = ANY (${ids}::text[])`;
  return new Map(rows.map(({ id, ...facts }) => [id, facts]));
}

/**
 * Finds an application by its id. Returns undefined for an application that the user may not
 * manage, such as one of another organization.
 */
export async function findApplication(
  tx: EntityManager,
  { userId, orgId, isAdmin }: ApplicationManager,
  id: string,
): Promise<ClientApplication | undefined> {
  const [row] = await sql<Row>(tx)`
    SELECT id, metadata, owner_id, org_id, resource, created_at, updated_at, last_used_at,
           approved_at, approved_uris
    FROM oauth_clients
    WHERE id = ${id} AND kind IN ('application', 'kubernetes') AND org_id IS NOT DISTINCT FROM ${orgId}::uuid
      AND (owner_id = ${userId} OR (${isAdmin} AND org_id IS NOT NULL))`;
  return row && application(row);
}

/**
 * Finds an application that a user may manage, and locks its row against other changes. Returns
 * undefined for any other application. Tokens can still be issued to the application meanwhile.
 */
export async function lockApplication(
  tx: EntityManager,
  manager: ApplicationManager,
  id: string,
): Promise<ClientApplication | undefined> {
  await sql(
    tx,
  )`SELECT id FROM oauth_clients WHERE id = ${id} AND kind IN ('application', 'kubernetes') FOR NO KEY UPDATE`;
  return findApplication(tx, manager, id);
}

/** Approves an application for its present redirect URIs. The caller has locked its row. */
export async function approveApplication(
  tx: EntityManager,
  id: string,
  adminId: string,
): Promise<void> {
  await sql(tx)`
    UPDATE oauth_clients
    SET approved_at = now(), approved_by = ${adminId}, approved_uris = ${redirectUrisOf(fragment`metadata`)}
    WHERE id = ${id}`;
}

/** Replaces the redirect URIs for which an application is approved. Null removes the approval. */
export async function limitApproval(
  tx: EntityManager,
  id: string,
  uris: readonly string[] | null,
): Promise<void> {
  await sql(tx)`
    UPDATE oauth_clients
    SET approved_uris = ${uris}::text[],
        approved_at = CASE WHEN ${uris}::text[] IS NULL THEN NULL ELSE approved_at END,
        approved_by = CASE WHEN ${uris}::text[] IS NULL THEN NULL ELSE approved_by END
    WHERE id = ${id}`;
}

/**
 * Registers a Kubernetes cluster. Returns false if the organization has registered the same
 * resource already.
 */
export async function insertCluster(
  tx: EntityManager,
  { id, orgId, resource, metadata }: NewCluster,
): Promise<boolean> {
  const inserted = await sql<{ id: string }>(tx)`
    INSERT INTO oauth_clients (id, kind, metadata, org_id, resource)
    VALUES (${id}, 'kubernetes', ${JSON.stringify(metadata)}, ${orgId}, ${resource})
    ON CONFLICT (org_id, resource) WHERE kind = 'kubernetes' DO NOTHING
    RETURNING id`;
  return inserted.length === 1;
}

/** Counts the Kubernetes clusters that an organization has registered. */
export async function countClusters(tx: EntityManager, orgId: string): Promise<number> {
  const [row] = await sql<{ n: number }>(tx)`
    SELECT count(*)::int AS n FROM oauth_clients WHERE org_id = ${orgId} AND kind = 'kubernetes'`;
  return row?.n ?? 0;
}

/**
 * Returns true if any organization has registered a resource. Only the token exchange of svc-cli
 * may then issue tokens for it. The database function `resource_key` normalizes the registered
 * resources. The given resource is normalized by WHATWG URL as well as by `resource_key`, because
 * the two differ for some spellings.
 */
export async function isRegisteredResource(tx: EntityManager, resource: string): Promise<boolean> {
  const found = await sql<{ id: string }>(tx)`
    SELECT id FROM oauth_clients
    WHERE kind = 'kubernetes'
      AND resource_key(resource) IN (${resourceKey(resource)}, resource_key(${resource}::text)) LIMIT 1`;
  return found.length > 0;
}

/**
 * Returns true if this organization has proven the domain to which a host belongs. If several
 * parent domains of the host are proven, the longest one decides. The row of that domain is locked,
 * so that the organization cannot lose the domain while the caller registers a cluster at the host.
 */
export async function lockProvenHost(
  tx: EntityManager,
  orgId: string,
  host: string,
): Promise<boolean> {
  const [nearest] = await sql<{ org_id: string }>(tx)`
    SELECT d.org_id FROM organization_domains d
    JOIN proven_domains p ON p.org_id = d.org_id AND p.domain = d.domain
    WHERE d.domain = ANY (${hostAndParents(host)}::text[])
    ORDER BY length(d.domain) DESC LIMIT 1 FOR SHARE OF d`;
  return nearest?.org_id === orgId;
}

/**
 * Returns true if the organization of a cluster could register the resource of the cluster today.
 * The resource must be a URN with the id of the organization, or an https URL under a domain that
 * the organization has proven. If several parent domains of the host are proven, the longest one
 * decides.
 */
export async function isProvenResource(tx: EntityManager, id: string): Promise<boolean> {
  const [found] = await sql<{ id: string }>(tx)`
    SELECT c.id FROM oauth_clients c
    WHERE c.id = ${id} AND (c.resource LIKE 'urn:svc:' || c.org_id || ':%'
      OR (c.resource LIKE 'https:%' AND ${nearestOwner(fragment`c`)} = c.org_id))`;
  return found !== undefined;
}

/**
 * Deletes the Kubernetes clusters whose host is the given domain or is below it, if their
 * organization has not proven the domain of the host. If several parent domains of the host are
 * proven, the longest one decides.
 *
 * @param whose `own` for the clusters of the organization, because it lost the domain; `others` for
 *   those of all other organizations, because the organization has proven the domain
 */
export async function endUnprovenClusters(
  tx: EntityManager,
  { orgId, domain }: { readonly orgId: string; readonly domain: string },
  whose: 'own' | 'others',
): Promise<ClientApplication[]> {
  const host = fragment`resource_host(c.resource)`;
  const ended = await sql<Row>(tx)`
    DELETE FROM oauth_clients c
    WHERE c.kind = 'kubernetes' AND (c.org_id = ${orgId}) = ${whose === 'own'}
      AND (${host} = ${domain} OR right(${host}, ${domain.length + 1}) = ${`.${domain}`})
      AND ${nearestOwner(fragment`c`)} IS DISTINCT FROM c.org_id
    RETURNING id, metadata, owner_id, org_id, resource, created_at, updated_at, last_used_at,
              approved_at, approved_uris`;
  return ended.map(application);
}

/**
 * Finds the id of the Kubernetes cluster that an organization registered for a resource; undefined
 * if it registered none.
 */
export async function findCluster(
  tx: EntityManager,
  orgId: string,
  resource: string,
): Promise<string | undefined> {
  const [row] = await sql<{ id: string }>(tx)`
    SELECT id FROM oauth_clients
    WHERE org_id = ${orgId} AND resource = ${resource} AND kind = 'kubernetes'`;
  return row?.id;
}

/**
 * Returns the SQL that finds which organization has proven the domain of a cluster's host. If
 * several parent domains of the host are proven, the longest one decides. The SQL gives the id of
 * the organization, or NULL if no such domain is proven.
 */
function nearestOwner(cluster: SqlFragment): SqlFragment {
  const host = fragment`resource_host(${cluster}.resource)`;
  return fragment`(SELECT p.org_id FROM proven_domains p
    WHERE ${host} = p.domain OR right(${host}, length(p.domain) + 1) = '.' || p.domain
    ORDER BY length(p.domain) DESC LIMIT 1)`;
}

function application(row: Row): ClientApplication {
  return {
    id: row.id,
    metadata: row.metadata,
    ownerId: row.owner_id,
    orgId: row.org_id,
    resource: row.resource,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    lastUsedAt: row.last_used_at,
    approvedAt: row.approved_at,
    approvedUris: row.approved_uris,
  };
}
