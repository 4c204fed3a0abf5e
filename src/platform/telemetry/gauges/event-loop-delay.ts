import { monitorEventLoopDelay } from 'node:perf_hooks';
import { observeGauges } from './gauges.js';

/**
 * The milliseconds between two samples. The measured delay is at least this long, even if the event
 * loop is never late.
 */
const RESOLUTION_MS = 10;

/** The gauge, with its name in the semantic conventions of OpenTelemetry for Node. */
const GAUGES = {
  'nodejs.eventloop.delay.p99': { description: 'Event loop 99 percentile delay', unit: 's' },
} as const;

/**
 * Exports the delay of the event loop to the OTLP collector: the 99th percentile since the last
 * export. An autoscaler can add replicas when the delay grows. A process with a late loop responds
 * late, even if its CPU usage is low.
 */
export function observeEventLoopDelay(): void {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  observeGauges(GAUGES, () => {
    const seconds = delays.percentile(99) / 1e9;
    delays.reset();
    return [{ attributes: {}, values: { 'nodejs.eventloop.delay.p99': seconds } }];
  });
}
