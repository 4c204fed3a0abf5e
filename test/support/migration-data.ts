import type { DataSource } from 'typeorm';
import { runInBatches } from '#platform/database/migration-steps/batches.js';
import { MIGRATIONS, readMigrations } from '#platform/database/migration-steps/migration-files.js';
import { RecordingLog } from './recording-log.js';

/** Runs the row changes of one migration again, in batches as an upgrade does. */
export async function repeatMigration(dataSource: DataSource, name: string): Promise<void> {
  const migration = (await readMigrations(MIGRATIONS)).find((one) => one.name === `${name}.sql`);
  if (!migration) throw new Error(`there is no migration ${name}`);
  const { batches, text } = migration;
  if (batches) await runInBatches(dataSource.manager, new RecordingLog(), migration, batches);
  else await dataSource.query(text);
}
