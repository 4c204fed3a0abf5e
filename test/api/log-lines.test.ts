import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERSION } from '../../src/platform/text/service-version.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { startProductionServer, type ProductionServer } from '../support/production-server.js';

describe('the log line of a request', () => {
  let app: TestApp;
  let ada: EnrolledUser;
  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled('ada@log-lines.example');
  });
  afterAll(() => app.close());

  const lineOf = async (path: string, headers: Record<string, string> = {}) => {
    const id = `line-${newAddress().replaceAll(':', '.')}`;
    await ada.client.get(path, { headers: { 'x-fapi-interaction-id': id, ...headers } });
    const found = () =>
      app.log
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .find((line) => line['context'] === 'http' && line['interactionId'] === id);
    await expect.poll(found).toBeDefined();
    return found() ?? {};
  };

  it('10.29 has method, route, status, time, client, user and organization as fields', async () => {
    const [user] = await app.dataSource.query<{ id: string; org_id: string }[]>(
      'SELECT id, org_id FROM users WHERE email = $1',
      ['ada@log-lines.example'],
    );
    expect(
      await lineOf('/v1/account/activity?limit=1', { 'x-forwarded-for': '192.0.2.7' }),
    ).toMatchObject({
      level: 'info',
      method: 'GET',
      route: '/v1/account/activity',
      status: 200,
      ms: expect.any(Number),
      client: '192.0.2.7',
      user_id: user?.id,
      org_id: user?.org_id,
      msg: 'GET /v1/account/activity 200',
    });
  });

  it('10.29 names no user where none was admitted, and the route template for text of a client', async () => {
    const line = await lineOf('/v1/credentials/ssh/krl/42');
    expect(line).toMatchObject({ route: '/v1/credentials/ssh/krl/{serial}', status: 200 });
    expect(line).not.toHaveProperty('user_id');
    expect(await lineOf('/no/such/route')).toMatchObject({ route: '<unmatched>', status: 404 });
  });

  it('10.29 names the client of an OAuth request', async () => {
    const path = '/oauth/authorize?client_id=svc-cli&response_type=code&scope=nothing';
    expect(await lineOf(path)).toMatchObject({ route: '/oauth/authorize', client_id: 'svc-cli' });
  });

  it.each(['/health', '/health/ready', '/static/app.css', '/static/nothing'])(
    '10.29 has level debug for %s',
    async (path) => {
      expect((await lineOf(path))['level']).toBe('debug');
    },
  );
});

describe('the log of the production server as text', () => {
  let server: ProductionServer;
  beforeAll(async () => {
    server = await startProductionServer({ SVC_LOG_FORMAT: 'text' });
  });
  afterAll(() => server.stop());

  it('10.29 states in one line the version, address, database and providers', () => {
    const lines = server.process.output().split('\n');
    const line = lines.find((text) => text.includes('is served on port')) ?? '';
    expect(line).toContain(`svc-server ${VERSION}`);
    expect(line).toContain(server.baseUrl);
    expect(line).toMatch(/database: PostgreSQL at \S+\/test_\w+;/);
    expect(line).toMatch(/identity providers: demo/);
  });

  it('10.4 has no line that a client forged, by OAuth parameters or JSON keys', async () => {
    const forged = '\n[00:00:00.000] INFO: http: GET /FORGED 200\r\nFORGED';
    const client = server.client();
    const claims = encodeURIComponent(`{"id_token":{"a${forged}":{"essential":"${forged}"}}}`);
    const broken = encodeURIComponent(`${forged}{`);
    for (const value of [claims, broken]) {
      await client.get(
        `/oauth/authorize?client_id=svc-cli&response_type=code&scope=openid&claims=${value}`,
      );
    }
    await client.post('/login/webauthn/start', { [forged]: forged });
    await client.post('/login/webauthn/complete', { state: forged, credential: { [forged]: 1 } });
    await client.get('/health');
    const lines = server.process.output().split('\n');
    expect(lines.filter((line) => /^(?:FORGED|\[00:00:00)/.test(line))).toEqual([]);
  });
});
