import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openOwnSession } from '#domain/sessions/own-session.repository.js';
import { sqlStateOf, UNCONFIRMED } from '#platform/database/statements/faults.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { postForm } from '../support/oauth-flow.js';

/**
 * The service has not confirmed this start of PostgreSQL, and its connections are older than the
 * start, as those to a pooler can be.
 */
describe('an unconfirmed start of PostgreSQL', () => {
  let app: TestApp;
  let person: EnrolledUser;
  const startedAt = (change: string) =>
    app.dataSource.query(`UPDATE database_identity SET started_at = started_at ${change}`);

  beforeAll(async () => {
    app = await startTestApp({ failoverLimits: { heartbeat: 60_000 } });
    person = await app.enrolled('ada@example.com');
  });
  afterAll(() => app.close());

  // Opens all 5 connections before each test, because a new connection to an unconfirmed server
  // makes the service confirm the server at once.
  beforeEach(() =>
    Promise.all(Array.from({ length: 5 }, () => app.dataSource.query('SELECT pg_sleep(0.02)'))),
  );

  it('issues nothing and reads no session: 503 with retry-after, and nothing is lost', async () => {
    expect((await person.client.get('/v1/sessions')).status).toBe(200);
    await startedAt("- interval '1 microsecond'");
    const refused = await person.client.get('/v1/sessions');
    await startedAt("+ interval '1 microsecond'");
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await person.client.get('/v1/sessions')).status).toBe(200);
  });

  it('refuses no unknown credential as wrong, and lists no revocations', async () => {
    const token = randomBytes(32).toString('base64url');
    const bearer = { headers: { authorization: `Bearer ${token}` } };
    const grant = 'urn:ietf:params:oauth:grant-type:device_code';
    const device = { grant_type: grant, device_code: token, client_id: 'svc-cli' };
    const ask = async () => {
      const answers = {
        bearer: await app.client().get('/v1/sessions', bearer),
        scim: await app.client().get('/scim/v2/Users', bearer),
        device: await postForm(app, '/oauth/token', device),
        krl: await app.client().get('/v1/credentials/ssh/krl'),
        serial: await app.client().get('/v1/credentials/ssh/krl/1'),
      };
      return Object.entries(answers).map(([name, { status }]) => `${name} ${status}`);
    };
    const ids = { id: Buffer.from(token), userId: randomUUID(), sessionId: randomUUID() };
    const session = { id: randomUUID(), tokenHash: Buffer.from(token), clientId: 'svc-cli' };
    const open = () =>
      openOwnSession(app.dataSource.manager, 8, ids, {
        ...session,
        authTime: undefined,
        from: { ip: undefined, userAgent: undefined },
      });
    expect(await ask()).toEqual(['bearer 401', 'scim 401', 'device 400', 'krl 200', 'serial 200']);
    expect(await open()).toBeUndefined();
    await startedAt("- interval '1 microsecond'");
    const refused = await ask();
    const fault = await open().catch(sqlStateOf);
    await startedAt("+ interval '1 microsecond'");
    expect(refused).toEqual(['bearer 503', 'scim 503', 'device 503', 'krl 503', 'serial 503']);
    expect(fault).toBe(UNCONFIRMED);
  });
});
