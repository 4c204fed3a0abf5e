import { createServer } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../support/database.js';
import { startProductionServer, type ProductionServer } from '../support/production-server.js';
import { providerEnvironment } from '../support/provider-environment.js';
import { startServerProcess } from '../support/server-process.js';
import {
  startSpanCollector,
  type CollectedSpan,
  type SpanCollector,
} from '../support/span-collector.js';
import '../support/full-scale-only.js';

const PACKAGES = /@opentelemetry\/([\w-]+)\//;

/** The argument of Node that prints the URL of every loaded module of OpenTelemetry. */
const WATCH = `--import=data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  registerHooks({
    load(url, context, next) {
      if (url.includes('@opentelemetry/')) process.stderr.write(url + '\\n');
      return next(url, context);
    },
  });
`)}`;

async function loadedBy(environment: Record<string, string>): Promise<Set<string>> {
  const database = await createTestDatabase();
  const nowhere = providerEnvironment('http://127.0.0.1:9');
  const server = startServerProcess(
    'main.js',
    { ...nowhere, SVC_DATABASE_URL: database.url, ...environment },
    { nodeArguments: [WATCH] },
  );
  // it ends after everything is loaded, because its provider cannot be reached
  expect(await server.ended).toBe(1);
  expect(server.output()).toContain('discovery failed');
  await database.drop();
  const lines = server.output().split('\n');
  return new Set(lines.map((line) => PACKAGES.exec(line)?.[1] ?? '').filter((name) => name !== ''));
}

describe('without OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  it('only the API of OpenTelemetry is loaded, which does nothing by itself', async () => {
    expect([...(await loadedBy({}))]).toEqual(['api']);
    const traced = await loadedBy({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
    expect([...traced]).toContain('sdk-node');
  });
});

describe('an exporter that cannot be built', () => {
  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'planted value'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'unix:/planted/value'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'planted value'],
  ])('is fatal, and reported with every other problem: %s=%s', async (name, value) => {
    const server = startServerProcess('main.js', {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      [name]: value,
    });
    expect(await server.ended).toBe(1);
    const lines = server.output().trim().split('\n');
    expect(lines.map((line) => line.split(':')[0]).toSorted()).toEqual(
      [name, 'SVC_IDPS', 'SVC_JWT_SECRET'].toSorted(),
    );
    expect(server.output()).not.toContain('planted');
  });
});

describe('two workers', () => {
  it('send gauges of two instances, so that none replaces the other’s', async () => {
    const collector = await startSpanCollector();
    const server = await startProductionServer({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
      OTEL_RESOURCE_ATTRIBUTES: 'k8s.pod.name=svc-1,service.instance.id=svc-1',
      SVC_WORKERS: '2',
    });
    await server.process.printed(/2 workers serve/);
    await server.client().get('/v1/keys');
    await server.stop();
    const instances = collector.resources().map((resource) => resource['service.instance.id']);
    expect(new Set(instances)).toEqual(new Set(['svc-1-1', 'svc-1-2']));
    expect(collector.resource()['k8s.pod.name']).toBe('svc-1');
    expect(collector.spans().map(({ name }) => name)).toContain('GET /v1/keys');
    await collector.close();
  });
});

describe('a traced request', () => {
  const INTERACTION = '01890000-0000-7000-8000-0000000000aa';
  const TRACE = '0af7651916cd43dd8448eb211c80319c';
  let collector: SpanCollector;
  let server: ProductionServer;
  let spans: CollectedSpan[];
  let log: Record<string, unknown>[];

  beforeAll(async () => {
    collector = await startSpanCollector();
    server = await startProductionServer({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.endpoint}/`,
      OTEL_RESOURCE_ATTRIBUTES: 'k8s.pod.name=svc-1,service.name=planted',
    });
    const client = server.client();
    const headers = {
      'x-fapi-interaction-id': INTERACTION,
      traceparent: `00-${TRACE}-b7ad6b7169203331-01`,
      authorization: 'Bearer nobodys',
    };
    await client.get('/v1/keys', { headers });
    await client.send('PATCH', '/v1/keys/not-an-id', { body: { name: 'x' } });
    await client.get('/nothing/here');
    await client.signIn('traced@acme.example');
    await server.stop();
    spans = collector.spans();
    const lines = server.process.output().trim().split('\n');
    log = lines.map((line) => JSON.parse(line));
  });
  afterAll(() => collector.close());

  const named = (name: string) => spans.filter((span) => span.name === name);

  it('comes with the gauges of notices, of the audit log and of the event loop, and no other metric', () => {
    expect([...new Set(collector.metrics())].toSorted()).toEqual([
      'nodejs.eventloop.delay.p99',
      'svc.audit.feed.delay',
      'svc.notices.failed',
      'svc.notices.oldest',
      'svc.notices.sent',
      'svc.notices.waiting',
    ]);
  });

  it('comes with gauges that name the pod, by which an autoscaler asks for them', () => {
    expect(collector.resource()).toEqual({ 'service.name': 'svc-server', 'k8s.pod.name': 'svc-1' });
  });

  it('is named by the template of its route, and by its method alone without a route', () => {
    expect(named('GET /v1/keys')[0]?.attributes).toMatchObject({
      'http.request.method': 'GET',
      'http.route': '/v1/keys',
      'http.response.status_code': '401',
    });
    expect(named('PATCH /v1/keys/{id}')).toHaveLength(1);
    const unmatched = spans.filter(
      ({ attributes }) => attributes['http.response.status_code'] === '404',
    );
    expect(unmatched.map(({ name }) => name)).toEqual(['GET']);
    expect(JSON.stringify(spans)).not.toContain('not-an-id');
  });

  it('continues the trace of its client, with the queries below it', () => {
    const [request] = named('GET /v1/keys');
    expect(request?.traceId).toBe(TRACE);
    expect(request?.parentId).toBe('b7ad6b7169203331');
    const below = spans.filter(({ traceId }) => traceId === TRACE);
    const query = below.find(({ attributes }) =>
      attributes['db.query.text']?.includes('FROM sessions'),
    );
    expect(query).toMatchObject({ name: 'WITH', parentId: request?.spanId });
  });

  it('reaches the provider under the same trace, without the query string', () => {
    const [callback] = named('GET /oauth/callback');
    const calls = spans.filter(
      ({ name, traceId }) => name === 'POST' && traceId === callback?.traceId,
    );
    expect(calls).not.toEqual([]);
    expect(calls[0]?.attributes['server.address']).toBe('127.0.0.1');
    expect(JSON.stringify(spans)).not.toMatch(/url\.(?:full|query|path)|user_agent\./);
  });

  it('carries its interaction id on every span', () => {
    for (const span of spans) {
      expect(span.attributes['svc.interaction_id'], span.name).toMatch(/^[0-9a-f-]{36}$/);
    }
    const ids = spans
      .filter(({ traceId }) => traceId === TRACE)
      .map(({ attributes }) => attributes['svc.interaction_id']);
    expect(ids.length).toBeGreaterThan(1);
    expect([...new Set(ids)]).toEqual([INTERACTION]);
  });

  it('is found from every line of its log, by interaction id and trace', () => {
    const lines = log.filter(({ interactionId }) => interactionId === INTERACTION);
    expect(lines.map(({ context }) => context)).toEqual(expect.arrayContaining(['errors', 'http']));
    for (const line of lines) {
      expect(line['trace_id']).toBe(TRACE);
      expect(line['span_id']).toMatch(/^[0-9a-f]{16}$/);
    }
  });
});

describe('a collector that fails', () => {
  /**
   * Starts a server, sends a request and stops it. Returns the exit status and the log lines about
   * tracing.
   */
  async function serveAndStop(port: number) {
    const server = await startProductionServer({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    });
    expect((await server.client().get('/health')).text).toBe('ok');
    const status = await server.stop();
    const lines = server.process.output().trim().split('\n');
    const told = lines
      .map((line) => JSON.parse(line))
      .filter(({ context }) => context === 'tracing');
    return { status, told: told.map(({ level, msg }) => `${level} ${msg}`) };
  }

  it('by never answering: the service serves, and stops', async () => {
    let connections = 0;
    const silent = createTcpServer(() => (connections += 1));
    const port = await listening(silent);
    expect((await serveAndStop(port)).status).toBe(0);
    expect(connections).toBeGreaterThan(0);
    silent.close();
  });

  it('by refusing: the log says so', async () => {
    const refusing = createServer((_request, response) => void response.writeHead(400).end());
    const port = await listening(refusing);
    expect(await serveAndStop(port)).toEqual({
      status: 0,
      told: ['warn spans cannot be delivered'],
    });
    refusing.close();
  });
});

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
}
