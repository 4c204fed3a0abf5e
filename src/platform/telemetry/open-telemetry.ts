import { IncomingMessage, type ClientRequest } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { diag, type Span } from '@opentelemetry/api';
import { getNodeAutoInstrumentations } from '@opentelemetry/auto-instrumentations-node';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace';
import type { TracingConfig } from '#platform/config/config.js';
import { setProcessVariable } from '#platform/config/environment.js';
import { interactionIdOf } from '#platform/http/request/interaction-id.js';
import { UNMATCHED, routeTemplateOf } from '#platform/http/routing/route-template.js';
import { CleanSpanExporter } from './clean-span-exporter.js';
import { INTERACTION_ATTRIBUTE } from './clean-span.js';
import { InteractionIdProcessor } from './interaction-id-processor.js';
import type { Tracing } from './tracing.js';

/** What is traced: requests in, queries, requests out. The package knows no other way to be told. */
const INSTRUMENTATIONS = 'http,pg,undici';
/** Milliseconds that what is left may take when the application stops. */
const LAST_DELIVERY_MS = 3000;

/**
 * Loads OpenTelemetry and begins. Only traces leave: metrics are scraped, logs are on standard output.
 *
 * @throws Error naming OTEL_EXPORTER_OTLP_ENDPOINT when the exporter cannot be built
 */
export function traceTo({ endpoint, serviceName }: TracingConfig): Tracing {
  setProcessVariable('OTEL_NODE_ENABLED_INSTRUMENTATIONS', INSTRUMENTATIONS);
  const exporter = new CleanSpanExporter(otlpExporter(`${endpoint.replace(/\/+$/, '')}/v1/traces`));
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
    // No baggage: what a client says is not passed on to the next.
    textMapPropagator: new W3CTraceContextPropagator(),
    spanProcessors: [new InteractionIdProcessor(), new BatchSpanProcessor({ exporter })],
    metricReaders: [],
    logRecordProcessors: [],
  });
  diag.disable(); // with OTEL_LOG_LEVEL it would print what it stumbles over, queries included
  sdk.start();
  // Only what is loaded by `require` is instrumented.
  const require = createRequire(import.meta.url);
  for (const name of ['node:http', 'node:https']) require(name);
  return {
    reportTo: (logger) => exporter.reportTo(logger),
    async onApplicationShutdown() {
      await Promise.race([sdk.shutdown(), delay(LAST_DELIVERY_MS, undefined, { ref: false })]);
    },
  };
}

function otlpExporter(url: string): OTLPTraceExporter {
  try {
    return new OTLPTraceExporter({ url });
  } catch (cause) {
    throw new Error('OTEL_EXPORTER_OTLP_ENDPOINT: no exporter can be built for it', { cause });
  }
}

/** Names the span of an incoming request once it is known which route took it. */
function nameByRoute(span: Span, request: IncomingMessage | ClientRequest): void {
  if (!(request instanceof IncomingMessage)) return;
  const route = routeTemplateOf(request);
  if (route === UNMATCHED) return;
  span.setAttribute('http.route', route);
  span.updateName(`${request.method} ${route}`);
}

/** Names the span of a query by its first word; it would be by the hash that prepared statements are called by. */
function nameByVerb(span: Span, statement: string): void {
  const [verb = ''] = statement.trim().split(/\W/, 1);
  span.setAttribute('db.operation.name', verb);
  span.updateName(verb);
}
