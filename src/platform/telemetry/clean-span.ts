import { SpanKind, type Attributes, type SpanContext } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

/** The name of the attribute that has the interaction id of the request to which a span belongs. */
export const INTERACTION_ATTRIBUTE = 'svc.interaction_id';

const ALWAYS = [INTERACTION_ATTRIBUTE, 'error.type'];
const HTTP = [
  'http.request.method',
  'http.response.status_code',
  'network.peer.address',
  'network.protocol.version',
  'url.scheme',
];
const SERVER = ['server.address', 'server.port'];
const DATABASE = ['db.system.name', 'db.namespace', 'db.operation.name', 'db.query.text'];

/**
 * The attributes of spans that are exported, by the kind of span. `server.address` of a server span
 * is not exported, because a client chooses it.
 */
const EXPORTED: Readonly<Record<SpanKind, ReadonlySet<string>>> = {
  [SpanKind.SERVER]: new Set([...ALWAYS, ...HTTP, 'http.route']),
  [SpanKind.CLIENT]: new Set([...ALWAYS, ...HTTP, ...SERVER, ...DATABASE]),
  [SpanKind.INTERNAL]: new Set(ALWAYS),
  [SpanKind.PRODUCER]: new Set(ALWAYS),
  [SpanKind.CONSUMER]: new Set(ALWAYS),
};

/**
 * Returns a copy of a span (one step of a trace) without secrets. Instrumentations record queries
 * of URLs, headers and error messages, so only listed attributes are kept. The SQL text of a query
 * is kept, because it has placeholders instead of values. Events, links and status messages are
 * dropped.
 */
export function cleanSpan(span: ReadableSpan): ReadableSpan {
  const { name, kind, parentSpanContext, resource, instrumentationScope } = span;
  const { startTime, endTime, duration, ended } = span;
  return {
    name,
    kind,
    resource,
    instrumentationScope,
    startTime,
    endTime,
    duration,
    ended,
    spanContext: () => withoutState(span.spanContext()),
    ...(parentSpanContext ? { parentSpanContext: withoutState(parentSpanContext) } : {}),
    status: { code: span.status.code },
    attributes: pick(span.attributes, EXPORTED[kind]),
    events: [],
    links: [],
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function pick(attributes: Attributes, names: ReadonlySet<string>): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([name]) => names.has(name)));
}

/**
 * Returns the context of a span without the trace state, a text that a client sends in the header
 * `tracestate`.
 */
function withoutState({ traceId, spanId, traceFlags, isRemote }: SpanContext): SpanContext {
  return { traceId, spanId, traceFlags, ...(isRemote === undefined ? {} : { isRemote }) };
}
