import { Logger } from '@nestjs/common';
import { readEnvironment } from '#platform/config/environment.js';
import { loadPart } from '#platform/config/load-config.js';
import { TABLE } from '#platform/config/table/settings.js';
import { migrateDatabase } from '#platform/database/open-database.js';
import { runOrExit } from './start.js';

/**
 * Migrates production's database and ends with status 0 (`npm run migrate`). The service migrates
 * at every start, too, but builds indexes afterwards, while it serves. This command also waits for
 * the indexes. It is for operators who migrate before the upgrade or under another role, and for
 * the job of the Helm chart.
 */
export function migrateProduction(): Promise<void> {
  return runOrExit(async () => {
    Logger.overrideLogger(['log', 'warn', 'error']);
    const log = new Logger('migrate');
    await migrateDatabase(loadPart(TABLE.database, readEnvironment()), 'production', log);
    log.log('The database has every migration of this version');
  });
}
