import type { DataSource } from 'typeorm';
import { sql } from '#platform/database/statements/sql.js';

/** The composition root that runs: what it trusts as an attestation root differs. */
export type Composition = 'production' | 'demo' | 'test';

/**
 * Makes a new database this composition's own, or checks that it is already. The first start decides, by one
 * conditional insert: no software key the demo enrolled ever waits in a database that production trusts.
 *
 * @throws Error naming both when another composition made the database
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
 * Refuses a database that another composition made; a new one passes. Asked before it is migrated, too: a start that is
 * refused must leave the other's database as it was.
 *
 * @throws Error naming both
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
