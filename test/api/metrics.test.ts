import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RequestsInFlight } from '../../src/platform/http/server/requests-in-flight.service.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { rawExchange, requestBytes } from '../support/raw-http.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

const TOKEN = 'the token of a scraper';

describe('GET /metrics', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_METRICS_BEARER_TOKEN: TOKEN } });
  });
  afterAll(() => app.close());

  const scrape = () =>
    app.client().get('/metrics', { headers: { authorization: `Bearer ${TOKEN}` } });

  /** Scrapes the metrics. Returns the value of each series by its name and labels. */
  async function series(): Promise<Map<string, number>> {
    const lines = (await scrape()).text.trimEnd().split('\n');
    return new Map(
      lines.map((line) => {
        const end = line.lastIndexOf(' ');
        return [line.slice(0, end), Number(line.slice(end + 1))];
      }),
    );
  }

  /**
   * Returns by how much each series changed during an action, without buckets, sums and the scrapes
   * themselves.
   */
  async function growth(act: () => Promise<unknown>): Promise<Record<string, number>> {
    const before = await series();
    await act();
    const after = await series();
    const grown = [...after].map(
      ([name, value]) => [name, value - (before.get(name) ?? 0)] as const,
    );
    const own = /path="\/metrics"|_bucket|_sum/;
    return Object.fromEntries(grown.filter(([name, by]) => by !== 0 && !own.test(name)));
  }

  describe('access to the metrics', () => {
    it.each([
      ['nothing', {}],
      ['another token', { authorization: 'Bearer the token of a scrapes' }],
      ['the beginning of the token', { authorization: `Bearer ${TOKEN.slice(0, -1)}` }],
      ['more than the token', { authorization: `Bearer ${TOKEN}x` }],
      ['an empty token', { authorization: 'Bearer ' }],
      ['the token without a scheme', { authorization: TOKEN }],
      ['the token of another scheme', { authorization: `Basic ${TOKEN}` }],
      ['the token as a session', { cookie: `svc_session=${encodeURIComponent(TOKEN)}` }],
    ])('%s is 401, and the response names the scheme', async (_what, headers) => {
      const answer = await app.client().get('/metrics', { headers });
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
      expect(answer.text).not.toContain('http_requests_total');
    });

    it('a hardware-verified session gives no access', async () => {
      const { client } = await app.enrolled('metrics@acme.example');
      expect((await client.get('/metrics')).status).toBe(401);
    });

    it('do not exist without a configured token', async () => {
      const bare = await startTestApp();
      try {
        const [metrics, nothing] = [
          await bare.client().get('/metrics', { headers: { authorization: 'Bearer ' } }),
          await bare.client().get('/nothing'),
        ];
        expect(metrics.status).toBe(404);
        expect(metrics.json).toEqual(nothing.json);
      } finally {
        await bare.close();
      }
    });

    it('is not rate-limited', async () => {
      const client = app.client();
      const statuses = new Set<number>();
      for (let i = 0; i < 60; i += 1) {
        const headers = { authorization: `bearer ${TOKEN}` };
        statuses.add((await client.get('/metrics', { headers })).status);
      }
      expect([...statuses]).toEqual([200]);
    });
  });

  describe('the output', () => {
    it('has four metrics and nothing else, without HELP and TYPE lines', async () => {
      const { text, headers } = await scrape();
      expect(headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
      const names = text
        .trimEnd()
        .split('\n')
        .map((line) => /^[a-z_]+/.exec(line)?.[0]);
      expect([...new Set(names)].toSorted()).toEqual([
        'http_request_duration_seconds_bucket',
        'http_request_duration_seconds_count',
        'http_request_duration_seconds_sum',
        'http_requests_total',
        'svc_auth_events_total',
        'svc_credential_issuance_total',
      ]);
      expect(text).toMatch(
        /^http_requests_total\{method="GET",path="\/metrics",status="200"\} \d+$/m,
      );
      expect(text).toMatch(
        /^http_request_duration_seconds_count\{method="GET",path="\/metrics"\} \d+$/m,
      );
      expect(text).not.toMatch(/duration_seconds\w+\{[^}]*status/);
    });

    it('has every event and every type from the start', async () => {
      const names = [...(await series()).keys()];
      expect(names.filter((name) => name.startsWith('svc_'))).toEqual([
        ...[
          'enrollment',
          'browser_login_success',
          'fido2_login_success',
          'fido2_login_failure',
          'authorization_code_success',
        ].map((event) => `svc_auth_events_total{event_type="${event}"}`),
        ...['ssh', 'aws', 'github', 'oidc'].map(
          (type) => `svc_credential_issuance_total{type="${type}"}`,
        ),
      ]);
    });
  });

  describe('requests', () => {
    const counted = (method: string, path: string, status: number | string, times = 1) => ({
      [`http_requests_total{method="${method}",path="${path}",status="${status}"}`]: times,
      [`http_request_duration_seconds_count{method="${method}",path="${path}"}`]: times,
    });

    it('have the template of their route as label, never text of the client', async () => {
      const id = '01890000-0000-7000-8000-000000000000';
      const rename = (path: string) => () =>
        app.client().send('PATCH', path, { body: { name: 'x' } });
      const expected = counted('PATCH', '/v1/keys/{id}', 401);
      expect(await growth(rename(`/v1/keys/${id}`))).toEqual(expected);
      expect(await growth(rename(`/V1/Keys/${id}/?id=${id}`))).toEqual(expected);
    });

    it.each([
      ['GET', '/nothing/here', 404],
      ['GET', '/v1/keys/one/too/many', 404],
      ['DELETE', '/health', 405],
    ])('that match no route are <unmatched>: %s %s', async (method, path, status) => {
      expect(await growth(() => app.client().send(method, path))).toEqual(
        counted(method, '<unmatched>', status),
      );
    });

    it('that never reach the router are counted too: a preflight, a wrong Host, an unreadable target', async () => {
      const preflight = {
        origin: 'https://a.example',
        'access-control-request-method': 'POST',
      };
      const send = () => app.client().send('OPTIONS', '/v1/keys', { headers: preflight });
      expect(await growth(send)).toEqual(counted('OPTIONS', '<unmatched>', 204));
      const raw = (line: string, headers?: string[]) => () =>
        rawExchange(app.baseUrl, requestBytes(app.baseUrl, line, headers));
      expect(await growth(raw('GET /v1/keys', ['Host: evil.example']))).toEqual(
        counted('GET', '<unmatched>', 421),
      );
      expect(await growth(raw('GET /%zz'))).toEqual(counted('GET', '<unmatched>', 400));
    });

    it('that Node cannot parse are counted, without a duration', async () => {
      expect(await growth(() => rawExchange(app.baseUrl, 'GARBAGE\r\n\r\n'))).toEqual({
        'http_requests_total{method="OTHER",path="<unmatched>",status="400"}': 1,
      });
    });

    it('that are refused by a limit are counted under their route', async () => {
      const client = app.client();
      const grown = await growth(async () => {
        while ((await client.post('/login/webauthn/start', {})).status !== 429);
        const large = { public_key: 'x'.repeat(9000) };
        const { client: enrolled } = await app.enrolled('large@acme.example');
        await enrolled.post('/v1/credentials/ssh', large);
      });
      const of = (path: string, status: number) =>
        grown[`http_requests_total{method="POST",path="${path}",status="${status}"}`];
      expect(of('/login/webauthn/start', 429)).toBeGreaterThanOrEqual(1);
      expect(of('/v1/credentials/ssh', 413)).toBe(1);
    });

    it('of an unknown method are OTHER, and any number of paths and methods is one series', async () => {
      const methods = ['PROPFIND', 'MKCOL', 'PURGE', 'LINK', 'SEARCH'];
      const before = (await series()).size;
      const grown = await growth(async () => {
        for (let i = 0; i < 50; i += 1) {
          const line = `${methods[i % methods.length] ?? ''} /path-${i}`;
          await rawExchange(app.baseUrl, requestBytes(app.baseUrl, line));
        }
      });
      expect(grown).toEqual(counted('OTHER', '<unmatched>', 404, 50));
      const perHistogram = 17;
      expect((await series()).size - before).toBeLessThanOrEqual(1 + perHistogram);
    });

    it('are counted once as aborted when the client left', async () => {
      const grown = await growth(async () => {
        const { port, host } = new URL(app.baseUrl);
        const socket = connect({ host: 'localhost', port: Number(port) });
        const head = [
          'POST /login/webauthn/start HTTP/1.1',
          `Host: ${host}`,
          `Origin: ${app.baseUrl}`,
          'Content-Type: application/json',
          'Content-Length: 100',
        ];
        const written = app.log.length;
        const inFlight = app.nest.get(RequestsInFlight);
        socket.write(`${head.join('\r\n')}\r\n\r\n{"redi`);
        await expect.poll(() => inFlight.count).toBe(1);
        socket.resetAndDestroy();
        await once(socket, 'close');
        await expect.poll(() => app.log.slice(written).join('')).toContain('start aborted');
      });
      expect(grown).toEqual(counted('POST', '/login/webauthn/start', 'aborted'));
    });
  });

  describe('events', () => {
    let email: string;
    let people = 0;
    beforeEach(() => {
      people += 1;
      email = `person${people}@acme.example`;
    });

    const events = async (act: () => Promise<unknown>) => {
      const grown = Object.entries(await growth(act)).filter(([name]) => name.startsWith('svc_'));
      return Object.fromEntries(grown.map(([name, by]) => [/"(\w+)"/.exec(name)?.[1] ?? name, by]));
    };

    it('an enrollment counts once, and not as a login although it logs in', async () => {
      expect(await events(() => app.enrolled(email))).toEqual({ enrollment: 1 });
    });

    it('a refused enrollment is not counted', async () => {
      const browser = app.client();
      await browser.signIn(email);
      const key = app.newKey();
      const act = async () => {
        const body = { state: 'x'.repeat(50), credential: {} };
        expect((await browser.post('/enroll/webauthn/complete', body)).status).toBe(400);
      };
      expect(await events(act)).toEqual({});
      expect(await events(() => browser.enroll(key))).toEqual({ enrollment: 1 });
    });

    it('a login in the browser counts as success or as failure', async () => {
      const { client, key } = await app.enrolled(email);
      expect(await events(() => client.logIn(key))).toEqual({ browser_login_success: 1 });
      const attempt = async () => {
        const { state, publicKey } = (await client.post('/login/webauthn/start', {})).json;
        const credential = key.get(publicKey, 'https://elsewhere.example');
        const answer = await client.post('/login/webauthn/complete', { state, credential });
        expect(answer.status).toBe(400);
      };
      expect(await events(attempt)).toEqual({ fido2_login_failure: 1 });
    });

    it('a certificate counts when it is issued, and not when it is refused', async () => {
      const { client } = await app.enrolled(email);
      const ask = (public_key: string) => client.post('/v1/credentials/ssh', { public_key });
      expect(await events(() => ask('ssh-rsa nonsense'))).toEqual({});
      expect(await events(() => ask(newPublicKeyLine()))).toEqual({ ssh: 1 });
    });
  });
});
