import type { Config } from '#platform/config/config.js';
import type { Tracing } from './open-telemetry.js';

let tracing: Tracing | undefined;

/**
 * Starts tracing when OTEL_EXPORTER_OTLP_ENDPOINT is set. Without it only OpenTelemetry's API is
 * loaded, by prom-client. The entry point calls this function before it imports other modules,
 * because a module that is already loaded cannot be traced.
 *
 * @returns undefined when tracing is off
 */
export async function startTracing(config: Config['tracing']): Promise<Tracing | undefined> {
  if (!config) return undefined;
  const { traceTo } = await import('./open-telemetry.js');
  tracing = traceTo(config);
  return tracing;
}

/** Returns the ids of the active span; undefined without tracing, and outside spans. */
export function activeSpan(): ReturnType<Tracing['activeSpan']> {
  return tracing?.activeSpan();
}
