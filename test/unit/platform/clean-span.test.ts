import { SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { ExportResultCode, type ExportResult } from '@opentelemetry/core';
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { describe, expect, it } from 'vitest';
import { CleanSpanExporter } from '../../../src/platform/telemetry/clean-span-exporter.js';
import { createLogger } from '../../../src/platform/telemetry/pino-options.js';

const SECRET = 'planted-secret';

describe('an exported span', () => {
  it('contains no attribute, event, status message or trace state that could carry a secret', () => {
    const collector = new InMemorySpanExporter();
    const exporter = new CleanSpanExporter(collector);
    const provider = new TracerProvider({
      spanProcessors: [new SimpleSpanProcessor({ exporter })],
    });
    const kinds = [SpanKind.SERVER, SpanKind.CLIENT, SpanKind.INTERNAL];
    for (const kind of kinds) {
      const span = provider.getTracer('test').startSpan('GET /v1/keys', { kind });
      span.setAttributes({
        'http.request.method': 'GET',
        'url.query': `code=${SECRET}`,
        'url.full': `https://idp.example/?state=${SECRET}`,
        'url.path': `/${SECRET}`,
        'user_agent.original': SECRET,
        'http.request.header.authorization': [SECRET],
        'db.postgresql.values': [SECRET],
        'an unforeseen attribute': SECRET,
      });
      span.addEvent(SECRET);
      span.recordException(new Error(SECRET));
      span.setStatus({ code: SpanStatusCode.ERROR, message: SECRET });
      span.addLink({
        context: {
          traceId: '1'.repeat(32),
          spanId: '1'.repeat(16),
          traceFlags: TraceFlags.SAMPLED,
        },
        attributes: { SECRET },
      });
      span.end();
    }
    const spans = collector.getFinishedSpans();
    expect(spans).toHaveLength(3);
    expect(spans[0]?.attributes).toEqual({ 'http.request.method': 'GET' });
    expect(spans[0]?.status).toEqual({ code: SpanStatusCode.ERROR });
    for (const { name, status, attributes, events, links } of spans) {
      const left = JSON.stringify({ name, status, attributes, events, links });
      expect(left).not.toContain(SECRET);
    }
  });

  it('names the host that the service calls, and not the Host header of a client', () => {
    const collector = new InMemorySpanExporter();
    const exporter = new CleanSpanExporter(collector);
    const provider = new TracerProvider({
      spanProcessors: [new SimpleSpanProcessor({ exporter })],
    });
    for (const kind of [SpanKind.SERVER, SpanKind.CLIENT]) {
      const attributes = { 'server.address': 'a.example' };
      provider.getTracer('test').startSpan('GET', { kind, attributes }).end();
    }
    expect(collector.getFinishedSpans().map(({ attributes }) => attributes)).toEqual([
      {},
      { 'server.address': 'a.example' },
    ]);
  });
});

describe('an unreachable collector', () => {
  it('is logged once when it goes away and once when it comes back', () => {
    const lines: string[] = [];
    const logger = createLogger(
      { format: 'json', filter: 'info' },
      { write: (line: string) => void lines.push(line) },
    );
    let result: ExportResult = { code: ExportResultCode.SUCCESS };
    const exporter = new CleanSpanExporter({
      export: (_spans, done) => done(result),
      shutdown: async () => undefined,
    });
    exporter.reportTo(logger);
    const say = () => exporter.export([], () => undefined);
    say();
    result = { code: ExportResultCode.FAILED, error: new Error('connect ECONNREFUSED') };
    for (let i = 0; i < 3; i += 1) say();
    result = { code: ExportResultCode.SUCCESS };
    for (let i = 0; i < 3; i += 1) say();
    const messages = lines.map((line) => JSON.parse(line));
    expect(messages.map(({ level, msg }) => `${level} ${msg}`)).toEqual([
      'warn spans cannot be delivered',
      'info spans are delivered again',
    ]);
    expect(messages[0].err.message).toBe('connect ECONNREFUSED');
  });
});
