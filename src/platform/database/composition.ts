import type { DataSource } from 'typeorm';
import { sql } from './sql.js';

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
  const [deployment] = await sql<{ composition: string }>(dataSource.manager)`
    SELECT composition FROM deployment`;
  const maker = deployment?.composition ?? 'unknown';
  if (maker === composition) return;
  throw new Error(
    `This database was made by the ${maker} composition, and the ${composition} composition refuses to start on it: ` +
      'what one trusts the other must not. Set SVC_DATABASE_URL or SVC_DATA_DIR to a database of its own.',
  );
}
