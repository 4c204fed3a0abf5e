import type { DataSource } from '#platform/database/statements/typeorm.js';
import { sql } from '#platform/database/statements/sql.js';

/**
 * The program that runs: the service, its demo or a test. Each of them trusts other attestation
 * roots, which are certificates of the makers of security keys.
 */
export type Composition = 'production' | 'demo' | 'test';

/**
 * Records in a new database which composition (production, demo or test) it belongs to, or checks
 * that record. The first start decides, by one conditional insert. So a database that production
 * trusts never contains a key of the demo, which software simulates.
 *
 * @throws Error that names both compositions, if another composition made the database
 */
export async function claimDatabase(
  dataSource: DataSource,
  composition: Composition,
): Promise<void> {
  await sql(dataSource.manager)`
    INSERT INTO deployment (composition) VALUES (${composition}) ON CONFLICT (only_row) DO NOTHING`;
  await refuseForeignDatabase(dataSource, composition);
}

/**
 * Refuses a database of another composition (production, demo or test), and accepts a database that
 * is new. The check also runs before the migrations, so that a refused start changes nothing in the
 * database.
 *
 * @throws Error that names both compositions
 */
export async function refuseForeignDatabase(
  dataSource: DataSource,
  composition: Composition,
): Promise<void> {
  const [table] = await sql<{ exists: boolean }>(dataSource.manager)`
    SELECT to_regclass('deployment') IS NOT NULL AS exists`;
  if (!table?.exists) return;
  const [deployment] = await sql<{ composition: string }>(dataSource.manager)`
    SELECT composition FROM deployment`;
  const maker = deployment?.composition ?? composition;
  if (maker === composition) return;
  throw new Error(
    `This database was made by the ${maker} composition, and the ${composition} composition refuses to start on it: ` +
      'what one trusts the other must not. Set SVC_DATABASE_URL or SVC_DATA_DIR to a database of its own.',
  );
}
