import { monitorEventLoopDelay } from 'node:perf_hooks';
import { observeGauges } from './gauges.js';

/** The milliseconds between two samples. A loop that is never late has this delay. */
const RESOLUTION_MS = 10;

/** The name is the one of the semantic conventions of OpenTelemetry for Node. */
const GAUGES = {
  'nodejs.eventloop.delay.p99': { description: 'Event loop 99 percentile delay', unit: 's' },
} as const;

/**
 * Exports the delay of the event loop to the OTLP collector: the 99th percentile since the last
 * export. An autoscaler can add replicas by it, because a process whose loop is late answers late,
 * while its CPU time may be that of a small pod.
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
