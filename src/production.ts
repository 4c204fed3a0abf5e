import 'reflect-metadata';
import type { Logger } from 'pino';
import { PINNED_ROOTS } from '#domain/keys/authenticators/attestation/trust-anchors.js';
import type { ReadConfiguration } from '#platform/config-sources/read-configuration.js';
import { prepareHeap } from '#platform/heap/heap.js';
import { EDGE_TIMEOUTS } from '#platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS } from '#platform/kms/call-policy.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { createLogger, endAtUnhandledErrors } from '#platform/telemetry/pino-options.js';
import type { Tracing } from '#platform/telemetry/open-telemetry.js';
import { TracingModule } from '#platform/telemetry/telemetry.module.js';
import { createApp } from './create-app.js';
import type { Worker } from './workers/worker.js';

/**
 * Starts the service in production. It trusts only the pinned roots of the vendor, and no variable
 * can add a root.
 *
 * @param worker the channel to the primary process; undefined in a process without workers
 * @throws Error with the reason of a failed start
 */
export async function startProduction(
  { config, warnings, live }: ReadConfiguration,
  tracing: Tracing | undefined,
  worker?: Worker,
): Promise<void> {
  const logger = loggerOf(config, worker);
  endAtUnhandledErrors(logger);
  if (!worker) for (const warning of warnings) logger.warn({ context: 'config' }, warning);
  tracing?.reportTo(logger);

  const app = await createApp(config, logger, {
    composition: 'production',
    ports: { https: 443, http: 80 },
    hosts: [],
    timeouts: EDGE_TIMEOUTS,
    kmsLimits: KMS_LIMITS,
    trustAnchors: PINNED_ROOTS,
    pageScripts: [],
    live,
    worker,
    modules: tracing ? [TracingModule.forRoot(tracing)] : [],
  });
  await app.listen();
  worker?.serve(app.nest.get(ServiceMetrics));
  prepareHeap();
}

/** Makes the logger of the process. The lines of a worker have its number. */
function loggerOf({ log }: ReadConfiguration['config'], worker: Worker | undefined): Logger {
  const logger = createLogger(log);
  return worker ? logger.child({ worker: worker.number }) : logger;
}
