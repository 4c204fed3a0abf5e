import type { Admin } from '#domain/directory/users.repository.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The largest number of secrets in the list for the admins of an organization. Of more secrets, the
 * list shows the newest.
 */
const MOST_LISTED = 200;

/**
 * A secret, such as a SCIM token, that an admin must confirm after the database has lost commits.
 */
export interface ListedSecret {
  readonly id: string;
  readonly secret: 'scim_token' | 'api_token' | 'client_secret';
  readonly secretId: string;
  readonly clientId: string | null;
  /** The description of the SCIM token, or the name of the API token or the application. */
  readonly name: string;
  readonly act: 'made' | 'ended';
  /** True if the database had lost the act that made or ended the secret. */
  readonly isLost: boolean;
  readonly happenedAt: Date;
  /** True if the secret can be used now. */
  readonly isValid: boolean;
}

interface Row {
  id: string;
  secret: 'scim_token' | 'api_token' | 'client_secret';
  secret_id: string;
  client_id: string | null;
  name: string;
  act: 'made' | 'ended';
  is_lost: boolean;
  happened_at: Date;
  is_valid: boolean;
}

/** Lists the secrets of an organization that an admin must still confirm, the newest first. */
export async function listUnconfirmed(tx: EntityManager, orgId: string): Promise<ListedSecret[]> {
  const rows = await sql<Row>(tx)`
    SELECT s.id, s.secret, s.secret_id, s.client_id, s.name, s.act, s.is_lost, s.happened_at,
           CASE s.secret
             WHEN 'scim_token' THEN EXISTS (SELECT FROM scim_tokens t WHERE t.id = s.secret_id
                                            AND t.revoked_at IS NULL AND t.expires_at > now())
             WHEN 'api_token' THEN EXISTS (SELECT FROM api_tokens t WHERE t.id = s.secret_id
                                           AND t.revoked_at IS NULL AND t.expires_at > now())
             ELSE EXISTS (SELECT FROM oauth_client_secrets k WHERE k.id = s.secret_id
                          AND (k.expires_at IS NULL OR k.expires_at > now())) END AS is_valid
    FROM secrets_to_confirm s
    WHERE s.org_id = ${orgId} AND s.confirmed_at IS NULL
    ORDER BY s.happened_at DESC, s.id LIMIT ${MOST_LISTED}`;
  return rows.map(listedSecret);
}

/**
 * Records, by one statement, that an admin confirmed a secret. Returns undefined if the secret is
 * confirmed already, or belongs to another organization.
 */
export async function confirmSecret(
  tx: EntityManager,
  { id: adminId, orgId }: Pick<Admin, 'id' | 'orgId'>,
  id: string,
): Promise<ListedSecret | undefined> {
  const [row] = await sql<Row>(tx)`
    UPDATE secrets_to_confirm SET confirmed_at = now(), confirmed_by = ${adminId}
    WHERE id = ${id} AND org_id = ${orgId} AND confirmed_at IS NULL
    RETURNING id, secret, secret_id, client_id, name, act, is_lost, happened_at, false AS is_valid`;
  return row && listedSecret(row);
}

function listedSecret(row: Row): ListedSecret {
  return {
    id: row.id,
    secret: row.secret,
    secretId: row.secret_id,
    clientId: row.client_id,
    name: row.name,
    act: row.act,
    isLost: row.is_lost,
    happenedAt: row.happened_at,
    isValid: row.is_valid,
  };
}
