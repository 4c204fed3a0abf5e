import type { FeedRow } from '#domain/audit/feed/audit-feed.repository.js';
import { feedJson } from '#domain/audit/feed/event-json.js';
import type { ReceiverRequest } from './webhook-request.js';

/** The severities of log records (OpenTelemetry Logs Data Model, "Field: SeverityNumber"). */
const INFO = { severityNumber: 9, severityText: 'INFO' } as const;
const WARN = { severityNumber: 13, severityText: 'WARN' } as const;

/**
 * Matches the types of audit events about a refusal or a failure. Their log records have the
 * severity WARN.
 */
const IS_WARNING = /_(?:failed|refused|withheld|dead_lettered)$/;

/**
 * Writes the request of OTLP over HTTP for events, as protobuf: a log record for each event, in
 * their order. The body of a record is the event as JSON, and its attributes are the values by
 * which logs are searched. The library is loaded at the first request, because most deployments
 * have no receiver.
 */
export async function otlpRequest(
  events: readonly FeedRow[],
  orgId: string,
): Promise<ReceiverRequest> {
  const { ProtobufLogsSerializer } = await import('@opentelemetry/otlp-transformer');
  const { resourceFromAttributes } = await import('@opentelemetry/resources');
  const resource = resourceFromAttributes({
    'service.name': 'svc-server',
    'svc.organization.id': orgId,
  });
  const instrumentationScope = { name: 'svc.audit' };
  const records = events.map((event) => ({
    ...recordOf(event),
    resource,
    instrumentationScope,
  }));
  const body = ProtobufLogsSerializer.serializeRequest(records);
  if (!body) throw new Error('the events could not be written as protobuf');
  return { headers: { 'content-type': 'application/x-protobuf' }, body: Uint8Array.from(body) };
}

/**
 * Returns how many events of a request a receiver rejected although it answered 200 (OTLP, "Partial
 * Success"). The result is 0 if the response does not say. The protocol forbids to send such a
 * request again.
 */
export async function otlpRejections(answer: Response): Promise<number> {
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const isProtobuf = answer.headers.get('content-type')?.startsWith('application/x-protobuf');
  if (bytes.byteLength === 0 || isProtobuf !== true) return 0;
  const { ProtobufLogsSerializer } = await import('@opentelemetry/otlp-transformer');
  try {
    const { partialSuccess } = ProtobufLogsSerializer.deserializeResponse(bytes);
    return Math.max(0, partialSuccess?.rejectedLogRecords ?? 0);
  } catch {
    return 0; // a body that cannot be parsed names no rejected events
  }
}

/** Returns the parts of a log record that depend on the event. */
function recordOf(event: FeedRow) {
  const json = feedJson(event);
  const time = event.createdAt.getTime();
  const at: [number, number] = [Math.floor(time / 1000), (time % 1000) * 1_000_000];
  const attributes = {
    'log.record.uid': json.id,
    'svc.audit.type': json.type,
    'svc.audit.class': json.class,
    'svc.audit.cursor': json.cursor,
    'user.id': json.actor_id,
    'user.email': json.actor_email,
    'svc.audit.subject.id': json.subject_id,
    'svc.audit.subject.email': json.subject_email,
    'client.address': json.ip,
    'user_agent.original': json.user_agent,
    'svc.request.id': json.request_id,
  };
  const known = Object.entries(attributes).filter((entry): entry is [string, string] => !!entry[1]);
  return {
    hrTime: at,
    hrTimeObserved: at,
    ...(IS_WARNING.test(event.type) ? WARN : INFO),
    eventName: `svc.audit.${json.type}`,
    body: JSON.stringify(json),
    attributes: Object.fromEntries(known),
    droppedAttributesCount: 0,
  };
}
