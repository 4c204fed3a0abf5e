import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Client } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startDatabaseProxy, type DatabaseProxy } from '../support/database-proxy.js';
import { postForm } from '../support/oauth-flow.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

describe('while the database is away', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  let app: TestApp;
  let client: Client;

  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await startDatabaseProxy(database.url);
    app = await startTestApp({ database: { ...database, url: proxy.url } });
    ({ client } = await app.enrolled('ada@acme.example'));
    await proxy.down();
  });
  afterAll(async () => {
    await app.close();
    await proxy.close();
    await database.drop();
  });

  it('the process is alive and not ready', async () => {
    const live = await client.get('/health');
    expect([live.status, live.text]).toEqual([200, 'ok']);
    const ready = await client.get('/health/ready');
    expect([ready.status, ready.json]).toEqual([503, { status: 'not_ready', reason: 'database' }]);
  });

  it('requests get 503 as problem documents, and no response says that the user is signed out', async () => {
    for (const answer of [
      await client.get('/v1/keys'),
      // 503, and not an empty list, which would accept revoked certificates
      await client.get('/v1/credentials/ssh/krl'),
      await client.get('/v1/credentials/ssh/krl/1'),
      await client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() }),
      await client.post('/login/webauthn/start', {}),
    ]) {
      expect([answer.status, answer.json.code]).toEqual([503, 'unavailable']);
      expect(answer.headers.get('content-type')).toContain('application/problem+json');
      expect(answer.headers.get('retry-after')).toBe('1');
      expect(answer.text).not.toMatch(/postgres|socket|ECONN|ENOENT|sql/i);
    }
    expect(client.cookie('svc_session')).toBeDefined();
  });

  it('the OAuth endpoints answer 503, which does not blame the client', async () => {
    const secret = { authorization: `Basic ${Buffer.from('a:b').toString('base64')}` };
    const token = await postForm(app, '/oauth/token', { grant_type: 'client_credentials' }, secret);
    expect([token.status, token.headers.get('retry-after')]).toEqual([503, '1']);
    expect(token.json.error).toBe('temporarily_unavailable');
    for (const path of ['/oauth/authorize?client_id=x', '/oauth/logout?client_id=x']) {
      const page = await client.get(path);
      expect([path, page.status, page.headers.get('retry-after')]).toEqual([path, 503, '1']);
      expect(page.headers.get('content-type')).toContain('text/html');
    }
  });

  it('a page is an error page', async () => {
    const page = await client.get('/account/keys', { headers: { accept: 'text/html' } });
    expect(page.status).toBe(503);
    expect(page.headers.get('content-type')).toContain('text/html');
  });

  it('everything works again when it is back, without a restart', async () => {
    await proxy.up();
    expect((await client.get('/health/ready')).json).toEqual({ status: 'ready' });
    expect((await client.get('/v1/keys')).json.keys).toHaveLength(1);
    const answer = await client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect(answer.status).toBe(200);
  });
});
