import type { Logger } from 'pino';
import type { Config } from '#platform/config/config.js';

/** Tracing, under way. Its hook is Nest's: what is left to deliver is delivered when the application stops. */
export interface Tracing {
  /** From now on the log says when spans cannot be delivered, and when they can again. */
  reportTo(logger: Logger): void;
  /** Takes a few seconds at most, whatever the collector does. */
  onApplicationShutdown(): Promise<void>;
}

/**
 * Begins tracing where OTEL_EXPORTER_OTLP_ENDPOINT is set; of OpenTelemetry nothing but its API is loaded elsewhere. To be
 * called before anything else is imported: what is loaded already can no longer be traced.
 *
 * @returns undefined where tracing is off
 */
export async function startTracing(config: Config['tracing']): Promise<Tracing | undefined> {
  if (!config) return undefined;
  const { traceTo } = await import('./open-telemetry.js');
  return traceTo(config);
}
