import { SpanKind, type Attributes, type SpanContext } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

/** The attribute that holds the interaction id of the request that a span belongs to. */
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

/** What may be told, by the kind of span. The address of ours is not: a client writes it. */
const TOLD: Readonly<Record<SpanKind, ReadonlySet<string>>> = {
  [SpanKind.SERVER]: new Set([...ALWAYS, ...HTTP, 'http.route']),
  [SpanKind.CLIENT]: new Set([...ALWAYS, ...HTTP, ...SERVER, ...DATABASE]),
  [SpanKind.INTERNAL]: new Set(ALWAYS),
  [SpanKind.PRODUCER]: new Set(ALWAYS),
  [SpanKind.CONSUMER]: new Set(ALWAYS),
};

/**
 * A span as it may leave. What instrumentations find worth telling is full of secrets (queries of URLs, headers, the
 * messages of errors), so only what is known to be none passes: the text of a query, for one, in which values are
 * parameters. Events and links are left out, and of a status its message.
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
    attributes: told(span.attributes, TOLD[kind]),
    events: [],
    links: [],
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function told(attributes: Attributes, names: ReadonlySet<string>): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([name]) => names.has(name)));
}

/** The trace state is a header of the client's. */
function withoutState({ traceId, spanId, traceFlags, isRemote }: SpanContext): SpanContext {
  return { traceId, spanId, traceFlags, ...(isRemote === undefined ? {} : { isRemote }) };
}
