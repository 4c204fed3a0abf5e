import { ModulesContainer, NestFactory } from '@nestjs/core';
import { loadConfig } from '#platform/config/load-config.js';
import { compileRoutes } from '#platform/http/routing/compile-routes.js';
import type { RoutePolicies } from '#platform/http/routing/route-policies.js';
import { EDGE_TIMEOUTS } from '#platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS } from '#platform/kms/call-policy.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { withRootSecret } from '#platform/kms/root-secret.js';
import { createLogger } from '#platform/telemetry/pino-options.js';
import { AppModule, type CompositionRoot } from '../app.module.js';
import { configurationPage } from './configuration.js';
import { endpointsPages } from './endpoints.js';

/**
 * The environment variables with which every optional route exists. No service starts with them.
 */
const ENVIRONMENT = {
  SVC_JWT_SECRET: 'the secret of a service that never starts',
  SVC_METRICS_BEARER_TOKEN: 'a token so that the metrics have a route',
  SVC_CERTIFICATION_TEST_TOKEN: 'a token so that the certification mode has routes',
  RUST_LOG: 'off',
};

/**
 * The composition root for this program. It only has to be valid, because no application is built
 * from it.
 */
const ROOT: CompositionRoot = {
  composition: 'production',
  ports: { https: 443, http: 80 },
  hosts: [],
  timeouts: EDGE_TIMEOUTS,
  kmsLimits: KMS_LIMITS,
  trustAnchors: [],
  pageScripts: [],
  modules: [],
};

/** Returns the table of all routes. Nest only scans the modules, so that no database is needed. */
export async function previewRoutes(): Promise<RoutePolicies> {
  const { config } = loadConfig(ENVIRONMENT);
  const kmsKeys = await KmsKeys.open(config);
  const logger = createLogger(config.log);
  const root = AppModule.compose(await withRootSecret(config, kmsKeys), logger, ROOT, kmsKeys);
  const context = await NestFactory.createApplicationContext(root, {
    preview: true,
    logger: false,
  });
  return compileRoutes(context.get(ModulesContainer));
}

/** Returns the pages of docs/reference/ by file name. */
export async function referencePages(): Promise<Readonly<Record<string, string>>> {
  const { routes } = await previewRoutes();
  return { ...endpointsPages(routes), 'configuration.md': configurationPage() };
}
