import 'reflect-metadata';
import { PINNED_ROOTS } from '#domain/keys/authenticators/attestation/trust-anchors.js';
import type { ReadConfiguration } from '#platform/config-sources/read-configuration.js';
import { returnStartUpMemory } from '#platform/heap/heap.js';
import { EDGE_TIMEOUTS } from '#platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS } from '#platform/kms/call-policy.js';
import { createLogger } from '#platform/telemetry/pino-options.js';
import type { Tracing } from '#platform/telemetry/open-telemetry.js';
import { TracingModule } from '#platform/telemetry/telemetry.module.js';
import { createApp } from './create-app.js';

/**
 * Starts the service in production. It trusts only the pinned roots of the vendor, and no variable
 * can add a root.
 *
 * @throws Error with the reason of a failed start
 */
export async function startProduction(
  { config, warnings, live }: ReadConfiguration,
  tracing: Tracing | undefined,
): Promise<void> {
  const logger = createLogger(config.log);
  for (const warning of warnings) logger.warn({ context: 'config' }, warning);
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
    modules: tracing ? [TracingModule.forRoot(tracing)] : [],
  });
  await app.listen();
  returnStartUpMemory();
}
