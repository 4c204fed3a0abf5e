import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { rawExchange, requestBytes } from '../support/raw-http.js';

describe('the host of a request', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  const ask = (target: string, ...headers: string[]) =>
    rawExchange(app.baseUrl, requestBytes(app.baseUrl, `GET ${target}`, headers));
  const port = () => new URL(app.baseUrl).port;

  it.each([
    ['another name', () => ['Host: evil.example']],
    ['our name at another port', () => ['Host: localhost:1']],
    ['our name without its port', () => ['Host: localhost']],
    ['our address, which a name may be rebound to', () => [`Host: 127.0.0.1:${port()}`]],
    ['a name that ends in ours', () => [`Host: evil-localhost:${port()}`]],
    ['our name with a dot at its end', () => [`Host: localhost.:${port()}`]],
  ])('is refused when it is %s', async (_, headers) => {
    const answer = await ask('/v1/keys', ...headers());
    expect(answer.status).toBe(421);
    expect(JSON.parse(answer.body)).toMatchObject({ status: 421, code: 'misdirected_request' });
  });

  it('is refused in the error format of the path, and logged as a security event', async () => {
    const before = app.log.length;
    const scim = await ask('/scim/v2/Users', 'Host: evil.example');
    expect([scim.status, JSON.parse(scim.body).status]).toEqual([421, '421']);
    const page = await ask('/login', 'Host: evil.example');
    expect([page.status, page.header('content-type')]).toEqual([421, 'text/html; charset=utf-8']);
    const lines = app.log.slice(before).map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        context: 'security',
        msg: expect.stringContaining('evil.example'),
      }),
    );
  });

  it('is refused when it is missing, empty, malformed or duplicated', async () => {
    const ours = `Host: localhost:${port()}`;
    const malformed = [`Host: evil@localhost:${port()}`, 'Host: a b', 'Host: a/b', 'Host: a:b'];
    const double = [ours, 'Host: evil.example'];
    for (const headers of [[], ['Host:'], double, [ours, ours], ...malformed.map((h) => [h])]) {
      const answer = await ask('/v1/keys', ...headers);
      expect([answer.status, JSON.parse(answer.body).code]).toEqual([400, 'invalid_request']);
      expect(answer.header('x-frame-options')).toBe('DENY');
    }
  });

  it('is that of an absolute target, even with another Host header', async () => {
    const ours = `Host: localhost:${port()}`;
    expect((await ask('http://evil.example/v1/keys', ours)).status).toBe(421);
    expect((await ask(`http://evil@localhost:${port()}/v1/keys`, ours)).status).toBe(400);
    expect((await ask(`http://LOCALHOST:${port()}/v1/keys`, 'Host: evil.example')).status).toBe(
      401,
    );
  });

  it('is parsed once: every part of the service sees the same path of an absolute target', async () => {
    const answer = await ask('http://a;b/health', 'Host: a;b');
    expect([answer.status, answer.body]).toEqual([200, 'ok']);
  });

  it('may be written in capitals', async () => {
    expect((await ask('/v1/keys', `Host: LocalHost:${port()}`)).status).toBe(401);
  });

  it('is not checked for probes', async () => {
    for (const path of ['/health', '/health/ready']) {
      expect((await ask(path, 'Host: 10.0.0.7:8080')).status).toBe(200);
      expect((await ask(`http://10.0.0.7:8080${path}`, 'Host: 10.0.0.7:8080')).status).toBe(200);
      // HTTP/1.0 needs no `Host`. HTTP/1.1 requires exactly one (RFC 9112 §3.2).
      const old = await rawExchange(app.baseUrl, `GET ${path} HTTP/1.0\r\n\r\n`);
      expect(old.status).toBe(200);
      expect((await ask(path)).status).toBe(400);
      expect((await ask(path, 'Host: a', 'Host: b')).status).toBe(400);
    }
    const old = await rawExchange(app.baseUrl, 'GET /v1/keys HTTP/1.0\r\n\r\n');
    expect(old.status).toBe(400);
  });

  it('is checked for paths that only resemble a probe', async () => {
    for (const path of ['/login/../health', '/login/%2e%2e/health', '/health/x', '//health']) {
      expect((await ask(path, 'Host: evil.example')).status).toBe(421);
      expect((await ask(`http://evil.example${path}`, 'Host: evil.example')).status).toBe(421);
    }
  });

  it('does not flood the log', async () => {
    const before = app.log.length;
    for (let i = 0; i < 60; i += 1) await ask('/v1/keys', `Host: flood-${i}.example`);
    const told = app.log.slice(before).filter((line) => line.includes('"security"'));
    expect(told.length).toBeLessThan(40);
  });
});
