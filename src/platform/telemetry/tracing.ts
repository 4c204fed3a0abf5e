import type { Config } from '#platform/config/config.js';
import type { Tracing } from './open-telemetry.js';

let tracing: Tracing | undefined;

/**
 * Starts tracing if OTEL_EXPORTER_OTLP_ENDPOINT is set. Otherwise only the API of OpenTelemetry is
 * loaded, which prom-client needs. The entry point calls this function before it imports other
 * modules, because a module that is already loaded cannot be traced.
 *
 * @param worker the number of the worker; undefined in a process without workers
 * @returns undefined if tracing is off
 */
export async function startTracing(
  config: Config['tracing'],
  worker?: number,
): Promise<Tracing | undefined> {
  if (!config) return undefined;
  const { traceTo } = await import('./open-telemetry.js');
  tracing = traceTo(config, worker);
  return tracing;
}

/**
 * Returns the ids of the span in which the current code runs; undefined without tracing, and
 * outside of spans.
 */
export function activeSpan(): ReturnType<Tracing['activeSpan']> {
  return tracing?.activeSpan();
}
