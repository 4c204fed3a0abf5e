import 'reflect-metadata';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { PINNED_ROOTS } from '#domain/keys/authenticators/attestation/trust-anchors.js';
import type { ReadConfiguration } from '#platform/config-sources/read-configuration.js';
import { EDGE_TIMEOUTS } from '#platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS } from '#platform/kms/call-policy.js';
import { createLogger } from '#platform/telemetry/pino-options.js';
import type { Tracing } from '#platform/telemetry/open-telemetry.js';
import { TracingModule } from '#platform/telemetry/telemetry.module.js';
import { createApp } from './create-app.js';

/**
 * Composes production: it trusts only the pinned vendor roots, and no variable adds to them.
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

type CollectGarbage = (options: { type: 'major'; flavor: 'last-resort' }) => void;

/**
 * Frees the memory of the start. Loading the modules leaves garbage, and makes V8 enlarge its young
 * generation for the life of the process, by about 100 MB that no request needs. This call takes a
 * tenth of a second, once.
 */
export function returnStartUpMemory(): void {
  setFlagsFromString('--expose-gc'); // exposes the collector to the next context only
  const collect = runInNewContext('gc') as CollectGarbage;
  collect({ type: 'major', flavor: 'last-resort' });
}
