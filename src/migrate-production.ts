import { Logger } from '@nestjs/common';
import { readEnvironment } from '#platform/config/environment.js';
import { loadDatabaseConfig } from '#platform/config/load-config.js';
import { openDatabase } from '#platform/database/open-database.js';
import { runOrExit } from './start.js';

/**
 * Migrates production's database and ends with status 0 (`npm run migrate`). The service does the same at every
 * start; this command is for operators who migrate first, under another role.
 */
export function migrateProduction(): Promise<void> {
  return runOrExit(async () => {
    Logger.overrideLogger(['log', 'warn', 'error']);
    const log = new Logger('migrate');
    const database = await openDatabase(loadDatabaseConfig(readEnvironment()), 'production', log);
    await database.close();
    log.log('The database has every migration of this version');
  });
}
