import 'reflect-metadata';
import cluster from 'node:cluster';
import { Logger } from '@nestjs/common';
import type { ReadConfiguration } from '#platform/config-sources/read-configuration.js';
import type { Composition } from '#platform/database/composition.js';
import { prepareDatabase } from '#platform/database/open-database.js';
import { nestLog } from '#platform/telemetry/application-log.js';
import { createLogger, endAtUnhandledErrors } from '#platform/telemetry/pino-options.js';
import { WorkerPool } from './worker-pool.js';

/**
 * Runs the service as the primary process of its workers, until a signal stops it. It prepares the
 * database once for all workers, and ends this process after the last worker has ended.
 *
 * @param composition the composition root of the workers
 * @param workerArguments the arguments of a worker; none in production
 * @throws Error with the reason of a failed start
 */
export async function runWorkers(
  { config, warnings, sources }: ReadConfiguration,
  composition: Composition,
  workerArguments: readonly string[] = [],
): Promise<void> {
  const logger = createLogger(config.log);
  endAtUnhandledErrors(logger);
  for (const warning of warnings) logger.warn({ context: 'config' }, warning);
  Logger.overrideLogger(nestLog(logger));
  const { workers } = config;
  const log = new Logger('database');
  const database = await prepareDatabase(config.database, workers, composition, log);

  // The configuration document is sent to the workers as bytes, and only the serialization
  // `advanced` (structured clones) can carry bytes.
  cluster.setupPrimary({ args: [...workerArguments], serialization: 'advanced' });
  const { embedded, connections } = database;
  const pool = new WorkerPool(
    workers,
    (number, isFirst) => ({ number, sources, database: { embedded, isFirst, connections } }),
    new Logger('workers'),
  );
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => pool.stop(signal));
  }
  process.on('SIGHUP', () => pool.reload());
  void pool.start();
  const status = await pool.ended;
  await database.stop();
  process.exit(status);
}
