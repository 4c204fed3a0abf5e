import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sshFingerprint } from '@svc/openssh';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { count, rows } from '../support/rows.js';

describe('POST /v1/credentials/ssh', () => {
  let app: TestApp;
  let client: Client;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client } = await app.enrolled('ada@ssh.example'));
  });
  afterAll(() => app.close());

  const ask = (body: unknown) =>
    client.post('/v1/credentials/ssh', body, { address: newAddress() });

  it('issues a certificate that ends with the session, and audits it before the response', async () => {
    const answer = await ask({ public_key: newPublicKeyLine() });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toBe('no-cache, no-store, must-revalidate');
    expect(answer.json).toEqual({
      certificate: expect.stringMatching(/^ssh-ed25519-cert-v01@openssh\.com AAAA/),
      serial: expect.stringMatching(/^\d{13,16}$/),
      key_id: 'ada@ssh.example@localhost',
      principals: ['ada@ssh.example'],
      valid_after: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      valid_before: expect.any(String),
      ca_public_key: expect.stringMatching(/^ssh-ed25519 /),
    });
    const [record] = await rows(
      app.dataSource,
      `SELECT c.key_id, c.valid_before <= s.expires_at AS inside, c.revoked_at,
              (SELECT count(*)::int FROM audit_events e
               WHERE e.type = 'ssh_credential' AND e.details->>'serial' = c.serial::text) AS audited
       FROM ssh_certificates c JOIN sessions s ON s.id = c.session_id WHERE c.serial = $1`,
      [answer.json.serial],
    );
    expect(record).toEqual({
      key_id: 'ada@ssh.example@localhost',
      inside: true,
      revoked_at: null,
      audited: 1,
    });
  });

  it('works with only the token in the header, without an Origin', async () => {
    const authorization = `Bearer ${client.cookie('svc_session')}`;
    const tool = app.client();
    const answer = await tool.post(
      '/v1/credentials/ssh',
      { public_key: newPublicKeyLine() },
      { headers: { authorization, origin: '' } },
    );
    expect(answer.status).toBe(200);
  });

  it('accepts a cookie alone only from the service’s own page', async () => {
    const answer = await client.post(
      '/v1/credentials/ssh',
      { public_key: newPublicKeyLine() },
      { headers: { origin: 'https://evil.example' } },
    );
    expect([answer.status, answer.json.code]).toEqual([403, 'invalid_origin']);
  });

  it('no session is 401, a bootstrap session 403 hardware_required', async () => {
    const nobody = await app
      .client()
      .post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect([nobody.status, nobody.json.code]).toEqual([401, 'unauthenticated']);
    expect(nobody.headers.get('www-authenticate')).toBe(
      `Bearer resource_metadata="${app.baseUrl}/.well-known/oauth-protected-resource"`,
    );
    const tool = await app
      .client()
      .post('/v1/credentials/ssh', { public_key: newPublicKeyLine() }, { headers: { origin: '' } });
    expect(tool.status).toBe(401);
    const bootstrap = app.client();
    await bootstrap.signIn('ada@ssh.example');
    const answer = await bootstrap.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect([answer.status, answer.json.code]).toEqual([403, 'hardware_required']);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(answer.json).toEqual({
      type: `${app.baseUrl}/errors/hardware_required`,
      title: 'Hardware key required',
      status: 403,
      detail: 'Log in with your security key first.',
      code: 'hardware_required',
    });
  });

  const { privateKey } = generateKeyPairSync('ed25519');
  it.each([
    ['garbage', 'garbage'],
    ['nothing', ''],
    ['RSA-2048', newPublicKeyLine('rsa', 2048)],
    ['a private key', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()],
    ['two lines', `${newPublicKeyLine()}\n${newPublicKeyLine()}`],
  ])('%s is a clear 400', async (_name, publicKey) => {
    const answer = await ask({ public_key: publicKey });
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_public_key']);
    expect(answer.json.detail.length).toBeGreaterThan(10);
    expect(answer.text).not.toContain('PRIVATE');
  });

  it('RSA-3072 is accepted', async () => {
    expect((await ask({ public_key: newPublicKeyLine('rsa', 3072) })).status).toBe(200);
  });

  it('a certificate cannot be certified again', async () => {
    const { certificate } = (await ask({ public_key: newPublicKeyLine() })).json;
    const answer = await ask({ public_key: certificate });
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_public_key']);
  });

  it.each([
    [{}, 400, 'invalid_request'],
    [{ public_key: 7 }, 400, 'invalid_request'],
    [[], 400, 'invalid_request'],
    ['{"public_key":', 400, 'malformed_body'],
    [{ public_key: newPublicKeyLine(), principals: [] }, 400, 'invalid_request'],
    [{ public_key: newPublicKeyLine(), principals: ['root'] }, 403, 'principal_not_allowed'],
    [{ public_key: newPublicKeyLine(), ttl_seconds: 0 }, 400, 'invalid_request'],
    [{ public_key: newPublicKeyLine(), ttl_seconds: 1.5 }, 400, 'invalid_request'],
    [{ public_key: 'x'.repeat(8 * 1024) }, 413, 'body_too_large'],
  ])('%j is refused with %i', async (body, status, code) => {
    const answer = await ask(body);
    expect([answer.status, answer.json.code]).toEqual([status, code]);
  });

  it('another content type, or a compressed body, is 415', async () => {
    for (const headers of [{ 'content-type': 'text/plain' }, { 'content-encoding': 'gzip' }]) {
      const answer = await client.post('/v1/credentials/ssh', '{}', {
        headers,
        address: newAddress(),
      });
      expect([answer.status, answer.json.code]).toEqual([415, 'unsupported_media_type']);
    }
  });

  it('a shorter life is granted on request', async () => {
    const { valid_before } = (await ask({ public_key: newPublicKeyLine(), ttl_seconds: 60 })).json;
    const left = Date.parse(valid_before) - Date.now();
    expect(left).toBeGreaterThan(50_000);
    expect(left).toBeLessThanOrEqual(60_000);
  });

  it('no certificate is issued under a domain that the organization does not own', async () => {
    const { client: moved } = await app.enrolled('moved@ssh.example');
    await app.dataSource.query(
      "UPDATE users SET email = 'moved@foreign.example' WHERE email = 'moved@ssh.example'",
    );
    const answer = await moved.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect([answer.status, answer.json.code]).toEqual([403, 'issuance_refused']);
    expect(await count(app.dataSource, "ssh_certificates WHERE key_id LIKE 'moved@%'")).toBe(0);
  });

  it('a user without an organization may get one for the verified address', async () => {
    const { client: loner } = await app.enrolled('loner@gmail.com');
    const answer = await loner.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect(answer.json.principals).toEqual(['loner@gmail.com']);
  });
});

describe('GET /v1/credentials/ssh/ca', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('is a line for TrustedUserCAKeys, and JSON on request', async () => {
    const client = app.client();
    const text = await client.get('/v1/credentials/ssh/ca');
    expect(text.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(text.text).toMatch(/^ssh-ed25519 AAAA\S+ \S+\n$/);
    const json = await client.get('/v1/credentials/ssh/ca', {
      headers: { accept: 'application/json' },
    });
    const [type, key, comment] = text.text.trim().split(' ');
    const fingerprint = sshFingerprint(Buffer.from(key ?? '', 'base64'));
    const public_key = `${type} ${key}`;
    expect(json.json).toEqual({
      public_key,
      comment,
      keys: [{ public_key, comment, fingerprint, signs: true }],
    });
  });
});

describe('/v1/keys', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('"lists the user\'s keys and renames them, audited"', async () => {
    const { client } = await app.enrolled('keys@acme.example');
    const [key] = (await client.get('/v1/keys')).json.keys;
    expect(key).toEqual({
      id: expect.any(String),
      name: 'Security key',
      aaguid: expect.any(String),
      model: null,
      created_at: expect.stringMatching(/Z$/),
      last_used_at: expect.any(String),
      current: true,
      user_verification: true,
    });
    const renamed = await client.send('PATCH', `/v1/keys/${key.id}`, { body: { name: ' desk ' } });
    expect([renamed.status, renamed.json.name]).toEqual([200, 'desk']);
    expect(await count(app.dataSource, "audit_events WHERE type = 'key_renamed'")).toBe(1);
  });

  it('"another user\'s key is 404, and so is a malformed id"', async () => {
    const { client: owner } = await app.enrolled('owner@acme.example');
    const { client: other } = await app.enrolled('other@acme.example');
    const [key] = (await owner.get('/v1/keys')).json.keys;
    for (const id of [key.id, '01890000-0000-7000-8000-000000000000', 'nonsense', '%00']) {
      const answer = await other.send('PATCH', `/v1/keys/${id}`, { body: { name: 'mine' } });
      expect([answer.status, answer.json.code]).toEqual([404, 'not_found']);
    }
  });
});
