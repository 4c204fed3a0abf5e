import { SqlFragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The tables whose rows give access, and so end after a loss of commits. A test compares this list
 * with all tables of the database.
 */
export const ENDED_TABLES = [
  'sessions',
  'oauth_grants',
  'oauth_artifacts',
  'saml_assertions',
  'ssh_certificates',
  'github_tokens',
  'enrollment_passes',
  'api_tokens',
  'event_receivers',
] as const;

/**
 * Waits for the transactions that are writing to a table, because they may still issue credentials.
 * These transactions began while the server counted as confirmed; later statements find the server
 * unconfirmed and issue nothing. Each wait locks one table only, so that no two waits block each
 * other.
 */
export async function waitForWriters(
  tx: EntityManager,
  table: (typeof ENDED_TABLES)[number],
): Promise<void> {
  await sql(tx)`LOCK TABLE ${new SqlFragment([table], [])} IN SHARE MODE`;
}
