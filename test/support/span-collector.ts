import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span of a trace (a timed step of a request) that the collector received. */
export interface CollectedSpan {
  readonly name: string;
  /** The ids are hexadecimal. `parentId` is empty if the span has no parent. */
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  /** The attributes by their names. A number is a text of decimal digits. */
  readonly attributes: Readonly<Record<string, string>>;
}

/** A running OpenTelemetry collector that stores what it receives. */
export interface SpanCollector {
  /** The URL of the collector, for OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly endpoint: string;
  /** Returns the bytes of all requests with spans. */
  bytes(): Buffer;
  spans(): CollectedSpan[];
  /** Returns the names of the received metrics. */
  metrics(): string[];
  /**
   * Returns the resource of the received metrics: attributes such as the name of the pod. Later
   * requests replace attributes of earlier ones.
   */
  resource(): Readonly<Record<string, string>>;
  /** Returns the resource of each request with metrics. */
  resources(): Readonly<Record<string, string>>[];
  close(): Promise<void>;
}

/** Starts a collector on loopback, which accepts OTLP over HTTP as protobuf. */
export async function startSpanCollector(): Promise<SpanCollector> {
  const bodies: Buffer[] = [];
  const metrics: Buffer[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (request.url === '/v1/traces') bodies.push(Buffer.concat(chunks));
      if (request.url === '/v1/metrics') metrics.push(Buffer.concat(chunks));
      response.end();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    bytes: () => Buffer.concat(bodies),
    spans: () => bodies.flatMap(spansOf),
    metrics: () => metrics.flatMap(metricsOf),
    resource: () => Object.fromEntries(metrics.flatMap(resourceOf)),
    resources: () => metrics.map((body) => Object.fromEntries(resourceOf(body))),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Decodes the spans of a request. The numbers are field numbers in
 * opentelemetry/proto/trace/v1/trace.proto.
 */
function spansOf(body: Buffer): CollectedSpan[] {
  const resourceSpans = fieldsOf(body, 1);
  const scopeSpans = resourceSpans.flatMap((message) => fieldsOf(message, 2));
  return scopeSpans.flatMap((message) => fieldsOf(message, 2)).map(readSpan);
}

/**
 * Decodes the names of the metrics of a request. In opentelemetry/proto/metrics/v1/metrics.proto,
 * the messages have the same structure as those of spans.
 */
function metricsOf(body: Buffer): string[] {
  const scopeMetrics = fieldsOf(body, 1).flatMap((message) => fieldsOf(message, 2));
  const metrics = scopeMetrics.flatMap((message) => fieldsOf(message, 2));
  return metrics.map((metric) => String(fieldsOf(metric, 1)[0]));
}

/**
 * Decodes the resource attributes of a request (opentelemetry/proto/resource/v1/resource.proto).
 */
function resourceOf(body: Buffer): [name: string, value: string][] {
  const resources = fieldsOf(body, 1).flatMap((message) => fieldsOf(message, 1));
  return resources.flatMap((resource) => fieldsOf(resource, 1)).map(readAttribute);
}

function readSpan(span: Buffer): CollectedSpan {
  const hex = (number: number) => fieldsOf(span, number)[0]?.toString('hex') ?? '';
  return {
    name: String(fieldsOf(span, 5)[0]),
    traceId: hex(1),
    spanId: hex(2),
    parentId: hex(4),
    attributes: Object.fromEntries(fieldsOf(span, 9).map(readAttribute)),
  };
}

function readAttribute(keyValue: Buffer): [name: string, value: string] {
  const [name, value] = [fieldsOf(keyValue, 1)[0], fieldsOf(keyValue, 2)[0] ?? Buffer.alloc(0)];
  const [text] = fieldsOf(value, 1);
  return [String(name), text === undefined ? String(readVarint(value, 1).value) : String(text)];
}

/**
 * Returns the length-delimited fields with a number in a protobuf message
 * (protobuf.dev/programming-guides/encoding).
 */
function fieldsOf(message: Buffer, wanted: number): Buffer[] {
  const found: Buffer[] = [];
  let at = 0;
  while (at < message.length) {
    const tag = readVarint(message, at);
    at = tag.end;
    const kind = tag.value & 7;
    if (kind === 0) at = readVarint(message, at).end;
    else if (kind === 1) at += 8;
    else if (kind === 5) at += 4;
    else {
      const length = readVarint(message, at);
      at = length.end + length.value;
      if (tag.value >> 3 === wanted) found.push(message.subarray(length.end, at));
    }
  }
  return found;
}

function readVarint(
  bytes: Buffer,
  start: number,
): { readonly value: number; readonly end: number } {
  let value = 0;
  let end = start;
  for (let scale = 1; ; scale *= 128) {
    const byte = bytes[end] ?? 0;
    end += 1;
    value += (byte & 127) * scale;
    if (byte < 128) return { value, end };
  }
}
