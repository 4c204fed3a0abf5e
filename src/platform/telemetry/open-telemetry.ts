import { IncomingMessage, type ClientRequest } from 'node:http';
import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import {
  diag,
  metrics,
  trace,
  type Context,
  type Span,
  type SpanContext,
} from '@opentelemetry/api';
import { getNodeAutoInstrumentations } from '@opentelemetry/auto-instrumentations-node';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  detectResources,
  envDetector,
  resourceFromAttributes,
  type Resource,
} from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { NodeSDK } from '@opentelemetry/sdk-node';
import {
  BatchSpanProcessor,
  NoopSpanProcessor,
  type Span as SdkSpan,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { TracingConfig } from '#platform/config/config.js';
import { setProcessVariable } from '#platform/config/environment.js';
import { interactionIdOf } from '#platform/http/request/interaction-id.js';
import { UNMATCHED, routeTemplateOf } from '#platform/http/routing/route-template.js';
import { CleanSpanExporter } from './clean-span-exporter.js';
import { INTERACTION_ATTRIBUTE } from './clean-span.js';
import { observeEventLoopDelay } from './gauges/event-loop-delay.js';

/**
 * The instrumentations of OpenTelemetry that are used: incoming requests (`http`), queries (`pg`)
 * and outgoing requests (`undici`). OpenTelemetry takes their names only from an environment
 * variable.
 */
const INSTRUMENTATIONS = 'http,pg,undici';
/** The attribute by which the semantic conventions of OpenTelemetry tell instances apart. */
const INSTANCE = 'service.instance.id';
/** The milliseconds between two exports of metrics. */
const METRICS_INTERVAL_MS = 60_000;
/**
 * The longest wait, in milliseconds, for the delivery of the last spans when the application stops.
 */
const LAST_DELIVERY_MS = 3000;

/**
 * The tracing of this process. Nest calls `onApplicationShutdown` when the application stops, so
 * that the last spans are delivered.
 */
export interface Tracing {
  /**
   * Sets the logger for lines that say that spans cannot be delivered, or that they can be
   * delivered again.
   */
  reportTo(logger: Logger): void;
  /** Returns the ids of the span in which the current code runs; undefined outside of spans. */
  activeSpan(): SpanContext | undefined;
  /** Delivers the last spans, in {@link LAST_DELIVERY_MS} milliseconds at most. */
  onApplicationShutdown(): Promise<void>;
}

/**
 * Copies the interaction id of a span to each span inside it, so that all spans of a request have
 * it.
 */
class InteractionIdProcessor extends NoopSpanProcessor {
  override onStart(span: SdkSpan, context: Context): void {
    const parent = trace.getSpan(context) as Partial<SdkSpan> | undefined;
    const id = parent?.attributes?.[INTERACTION_ATTRIBUTE];
    if (id !== undefined) span.setAttribute(INTERACTION_ATTRIBUTE, id);
  }
}

/**
 * Loads OpenTelemetry and starts tracing. It sends traces and the gauges of `gauges/` to the
 * collector. The other metrics are read at `/metrics`, and logs go to standard output.
 *
 * @param worker the number of the worker; undefined in a process without workers
 * @throws Error naming OTEL_EXPORTER_OTLP_ENDPOINT if the exporter cannot be built
 */
export function traceTo({ endpoint, serviceName }: TracingConfig, worker?: number): Tracing {
  setProcessVariable('OTEL_NODE_ENABLED_INSTRUMENTATIONS', INSTRUMENTATIONS);
  const address = endpoint.replace(/\/+$/, '');
  const exporter = new CleanSpanExporter(otlpExporter(`${address}/v1/traces`));
  const sdk = new NodeSDK({
    serviceName,
    autoDetectResources: false,
    instrumentations: getNodeAutoInstrumentations({
      '@opentelemetry/instrumentation-http': {
        startIncomingSpanHook: (request) => ({ [INTERACTION_ATTRIBUTE]: interactionIdOf(request) }),
        applyCustomAttributesOnSpan: nameByRoute,
        requireParentforOutgoingSpans: true,
      },
      '@opentelemetry/instrumentation-pg': {
        requireParentSpan: true,
        requestHook: (span, { query }) => nameByVerb(span, query.text),
      },
      '@opentelemetry/instrumentation-undici': { requireParentforSpans: true },
    }),
    // Baggage, which has values that a client chose, is not passed on to other services.
    textMapPropagator: new W3CTraceContextPropagator(),
    spanProcessors: [new InteractionIdProcessor(), new BatchSpanProcessor({ exporter })],
    metricReaders: [],
    logRecordProcessors: [],
  });
  diag.disable(); // with OTEL_LOG_LEVEL it would print data, queries included
  sdk.start();
  const gauges = exportGauges(address, resourceOf(serviceName, worker));
  // OpenTelemetry changes a module at the moment when `require` loads it. The service itself
  // imports these two modules, so they are loaded by `require` once.
  const require = createRequire(import.meta.url);
  for (const name of ['node:http', 'node:https']) require(name);
  return {
    reportTo: (logger) => exporter.reportTo(logger),
    activeSpan: () => trace.getActiveSpan()?.spanContext(),
    async onApplicationShutdown() {
      const delivered = Promise.all([sdk.shutdown(), gauges.shutdown()]);
      await Promise.race([delivered, delay(LAST_DELIVERY_MS, undefined, { ref: false })]);
    },
  };
}

/**
 * Exports the gauges of `gauges/`. The other metrics of the instrumentations are not exported,
 * because the instrumentations get no meter provider.
 */
function exportGauges(address: string, resource: Resource): MeterProvider {
  const provider = new MeterProvider({
    resource,
    readers: [
      new PeriodicExportingMetricReader({
        exporter: new OTLPMetricExporter({ url: `${address}/v1/metrics` }),
        exportIntervalMillis: METRICS_INTERVAL_MS,
      }),
    ],
  });
  metrics.setGlobalMeterProvider(provider);
  observeEventLoopDelay();
  return provider;
}

/**
 * Returns the resource that says to which process the gauges belong. OTEL_RESOURCE_ATTRIBUTES names
 * for example the pod, because an autoscaler asks for the value of each pod. Workers share these
 * variables, so each worker gets an instance of its own. Otherwise one worker's gauges would
 * replace another's.
 */
function resourceOf(serviceName: string, worker: number | undefined): Resource {
  const detected = detectResources({ detectors: [envDetector] });
  const own: Record<string, string> = { 'service.name': serviceName };
  if (worker !== undefined) {
    const given = detected.attributes[INSTANCE];
    own[INSTANCE] = `${typeof given === 'string' ? given : hostname()}-${worker}`;
  }
  return detected.merge(resourceFromAttributes(own));
}

function otlpExporter(url: string): OTLPTraceExporter {
  try {
    return new OTLPTraceExporter({ url });
  } catch (cause) {
    throw new Error('OTEL_EXPORTER_OTLP_ENDPOINT: no exporter can be built for it', { cause });
  }
}

/**
 * Names the span of an incoming request by its route. The route is known only at the end of the
 * request.
 */
function nameByRoute(span: Span, request: IncomingMessage | ClientRequest): void {
  if (!(request instanceof IncomingMessage)) return;
  const route = routeTemplateOf(request);
  if (route === UNMATCHED) return;
  span.setAttribute('http.route', route);
  span.updateName(`${request.method} ${route}`);
}

/**
 * Names the span of a query by the first word of the SQL. The instrumentation itself would use the
 * name of the prepared statement, which is a hash.
 */
function nameByVerb(span: Span, statement: string): void {
  const [verb = ''] = statement.trim().split(/\W/, 1);
  span.setAttribute('db.operation.name', verb);
  span.updateName(verb);
}
