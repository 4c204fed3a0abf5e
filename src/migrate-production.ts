import 'reflect-metadata';
import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import { readEnvironment } from '#platform/config/environment.js';
import { migrationSettings } from '#platform/config-sources/migration-settings.js';
import { migrateDatabase } from '#platform/database/open-database.js';
import { nestLog } from '#platform/telemetry/application-log.js';
import { createLogger, endAtUnhandledErrors } from '#platform/telemetry/pino-options.js';
import { describeDatabase } from './start-up-line.js';
import { runOrExit } from './start.js';

/**
 * Migrates production's database and ends with status 0 (`npm run migrate`). The service migrates
 * at every start, too, but builds indexes afterwards, while it serves. This command also waits for
 * the indexes. It is for operators who migrate before the upgrade or under another role, and for
 * the job of the Helm chart.
 */
export function migrateProduction(): Promise<void> {
  return runOrExit(async () => {
    const { database, log: settings, warnings } = migrationSettings(readEnvironment());
    const logger = createLogger(settings);
    endAtUnhandledErrors(logger);
    for (const warning of warnings) logger.warn({ context: 'config' }, warning);
    Logger.overrideLogger(nestLog(logger));
    const log = new Logger('migrate');
    await migrateDatabase(database, 'production', log);
    const { url, directUrl = url, dataDir } = database;
    const migrated = describeDatabase({ url: directUrl, dataDir: resolve(dataDir) });
    log.log(`${migrated} has every migration of this version`);
  });
}
