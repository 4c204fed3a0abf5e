import { SqlFragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The tables whose rows give access. A test compares them with all tables of the database. */
export const ENDED_TABLES = [
  'sessions',
  'oauth_grants',
  'oauth_artifacts',
  'saml_assertions',
  'ssh_certificates',
  'github_tokens',
  'enrollment_passes',
] as const;

/**
 * Waits for the transactions that are writing to a table. A statement that found the server
 * confirmed may still run; later statements find it unconfirmed. Each transaction locks one table
 * only, so that no two of them wait for one another.
 */
export async function waitForWriters(
  tx: EntityManager,
  table: (typeof ENDED_TABLES)[number],
): Promise<void> {
  await sql(tx)`LOCK TABLE ${new SqlFragment([table], [])} IN SHARE MODE`;
}
