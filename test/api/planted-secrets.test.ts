import { Client as Database } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Client, RequestOptions } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { followToCallback } from '../support/fake-idp.js';
import { startProductionServer, type ProductionServer } from '../support/production-server.js';
import { rawExchange, requestBytes } from '../support/raw-http.js';
import { startSpanCollector, type SpanCollector } from '../support/span-collector.js';

const METRICS_TOKEN = 'planted-metrics-token';

/**
 * Texts that stand for secrets of a client. Each is different, so that a failure names the place
 * from which it leaked.
 */
const PLANTED = {
  authorization: 'planted-authorization',
  dpop: 'planted-dpop-proof',
  cookie: 'planted-session-cookie',
  otherCookie: 'planted-other-cookie',
  header: 'planted-arbitrary-header',
  userAgent: 'planted-user-agent',
  referer: 'planted-referer',
  forwarded: 'planted-forwarded',
  traceState: 'planted-trace-state',
  baggage: 'planted-baggage',
  code: 'planted-code',
  state: 'planted-oauth-state',
  idTokenHint: 'planted-id-token-hint',
  credential: 'planted-webauthn-assertion',
  json: 'planted-json-field',
  form: 'planted-form-field',
  malformedJson: 'json-6d22', // short, because the error of a parser quotes only a few characters
  interactionId: 'planted interaction id',
  head: 'planted-oversized-head',
  unreadable: 'planted-unreadable-line',
};

const QUERY = new URLSearchParams({
  code: PLANTED.code,
  state: PLANTED.state,
  id_token_hint: PLANTED.idTokenHint,
}).toString();

const HEADERS = {
  dpop: PLANTED.dpop,
  'x-api-key': PLANTED.header,
  'x-fapi-interaction-id': PLANTED.interactionId,
  'user-agent': PLANTED.userAgent,
  referer: `https://elsewhere.example/?${PLANTED.referer}`,
  'x-forwarded-host': `${PLANTED.forwarded}.example`,
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: `vendor=${PLANTED.traceState}`,
  baggage: `key=${PLANTED.baggage}`,
};

const JSON_BODY = {
  state: PLANTED.state,
  credential: { id: PLANTED.credential, response: { signature: PLANTED.credential } },
  public_key: PLANTED.json,
  name: PLANTED.json,
};

describe('a secret that a client sends', () => {
  let database: TestDatabase;
  let collector: SpanCollector;
  let server: ProductionServer;
  const answers: { readonly status: number; readonly text: string }[] = [];
  /**
   * The secrets of a real login: authorization code, state, nonce, PKCE challenge and session
   * token.
   */
  const real: string[] = [];
  let metrics: string;
  let log: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    collector = await startSpanCollector();
    server = await startProductionServer({
      SVC_DATABASE_URL: database.url,
      SVC_METRICS_BEARER_TOKEN: METRICS_TOKEN,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
      OTEL_LOG_LEVEL: 'all',
    });
    await sendEverywhere();
    await signIn();
    await breakSessions();
    await send(server.client(), 'GET', '/v1/keys'); // gets 500, because the look-up fails
    const { text } = await server
      .client()
      .get('/metrics', { headers: { authorization: `Bearer ${METRICS_TOKEN}` } });
    metrics = text;
    await server.stop(); // sends the last spans as it stops
    log = server.process.output();
  });
  afterAll(async () => {
    await collector.close();
    await database.drop();
  });

  /**
   * Sends a request with secrets in its headers, cookies and query: once with a bearer token, and
   * once with the cookies alone.
   */
  async function send(
    client: Client,
    method: string,
    path: string,
    { body, headers }: RequestOptions = {},
  ): Promise<void> {
    for (const authorization of [`Bearer ${PLANTED.authorization}`, '']) {
      client.setCookie('svc_session', PLANTED.cookie);
      client.setCookie('other', PLANTED.otherCookie);
      const own = { ...HEADERS, authorization, ...headers };
      const answer = await client.send(method, `${path}?${QUERY}`, { body, headers: own });
      keep(answer);
    }
  }

  function keep({ status, text, headers }: Answer): void {
    answers.push({ status, text: `${text}${JSON.stringify([...headers])}` });
  }

  async function sendEverywhere(): Promise<void> {
    const fresh = () => server.client();
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    await send(fresh(), 'GET', '/health');
    await send(fresh(), 'GET', '/login');
    await send(fresh(), 'GET', '/oauth/callback');
    await send(fresh(), 'GET', '/v1/keys');
    await send(fresh(), 'GET', `/nothing%3F${QUERY}`);
    await send(fresh(), 'GET', `/oauth%2Fcallback%3fcode=${PLANTED.code}`);
    await send(fresh(), 'DELETE', '/health', { body: JSON_BODY });
    for (const path of ['/login/webauthn/complete', '/enroll/webauthn/complete']) {
      await send(fresh(), 'POST', path, { body: JSON_BODY });
      await send(fresh(), 'POST', path, { body: `{"a":${PLANTED.malformedJson}}` });
      await send(fresh(), 'POST', path, { body: `credential=${PLANTED.form}`, headers: form });
    }
    const large = { ...JSON_BODY, padding: PLANTED.json.repeat(4000) };
    await send(fresh(), 'POST', '/login/webauthn/complete', { body: large });
    await send(fresh(), 'POST', '/nothing', { body: JSON_BODY });
    const hasty = fresh();
    for (let i = 0; i < 6; i += 1) await send(hasty, 'POST', '/login/webauthn/start', { body: {} });
    for (const line of [`GET /v1/keys?${QUERY}`, `GET //?${QUERY}`, `GET /#${QUERY}`]) {
      const headers = ['Host: elsewhere.example', `Cookie: svc_session=${PLANTED.cookie}`];
      const { status, body } = await rawExchange(
        server.baseUrl,
        requestBytes(server.baseUrl, line, headers),
      );
      answers.push({ status, text: body });
    }
    const tooLarge = [`X-Large: ${PLANTED.head.repeat(1000)}`];
    const heads = [
      requestBytes(server.baseUrl, 'GET /', tooLarge),
      `GET / HTTP/1.1\r\n${PLANTED.unreadable}\r\n\r\n`,
    ];
    for (const head of heads) {
      const { status, body } = await rawExchange(server.baseUrl, head);
      answers.push({ status, text: body });
    }
  }

  /** Completes an upstream login, and adds its secrets to `real`. */
  async function signIn(): Promise<void> {
    const callback = `${server.baseUrl}/oauth/callback`;
    const browser = server.client();
    const departure = await browser.get('/login?provider=demo&login_hint=ada@acme.example');
    const away = new URL(departure.headers.get('location') ?? '');
    const back = await followToCallback(away, callback);
    expect((await browser.get(back.href)).status).toBe(303);
    for (const name of ['code', 'state']) real.push(back.searchParams.get(name) ?? '');
    for (const name of ['nonce', 'code_challenge']) real.push(away.searchParams.get(name) ?? '');
    real.push(browser.cookie('svc_session') ?? '');
  }

  /** Renames a column, so that every later look-up of a session fails with an unexpected error. */
  async function breakSessions(): Promise<void> {
    const connection = new Database({ connectionString: database.url });
    await connection.connect();
    await connection.query('ALTER TABLE sessions RENAME COLUMN token_hash TO elsewhere');
    await connection.end();
  }

  it('was sent at every place: every kind of response came, and was logged', () => {
    const statuses = [...new Set(answers.map(({ status }) => status))];
    expect(statuses.toSorted((a, b) => a - b)).toEqual([
      200, 400, 401, 404, 405, 413, 415, 421, 429, 431, 500,
    ]);
    for (const line of ['GET /v1/keys 401', 'GET /v1/keys 500', 'GET /oauth/callback 400']) {
      expect(log).toContain(`"msg":"${line}"`);
    }
    expect(metrics).toContain('{method="GET",path="/v1/keys",status="401"}');
    const names = collector.spans().map(({ name }) => name);
    for (const name of ['GET /v1/keys', 'GET /oauth/callback', 'POST /login/webauthn/complete']) {
      expect(names).toContain(name);
    }
    expect(names).toContain('SELECT');
    // the span of the request to the token endpoint of the provider
    expect(names).toContain('POST');
  });

  it.each(Object.entries(PLANTED))(
    'never reaches log, spans, metrics or an error body: %s',
    (_where, secret) => {
      expect(log).not.toContain(secret);
      expect(collector.bytes().includes(secret)).toBe(false);
      expect(metrics).not.toContain(secret);
      expect(answers.filter(({ text }) => text.includes(secret))).toEqual([]);
    },
  );

  it('is not shown either when it belongs to a real sign-in or to the service', () => {
    const own = [METRICS_TOKEN, 'a root secret only this test knows', 'the secret of the client'];
    for (const secret of [...real, ...own]) {
      expect(secret.length).toBeGreaterThan(20);
      expect(log).not.toContain(secret);
      expect(collector.bytes().includes(secret)).toBe(false);
      expect(metrics).not.toContain(secret);
    }
  });
});
