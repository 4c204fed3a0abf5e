import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';

/**
 * A start of PostgreSQL that the service has not confirmed, behind connections that exist already,
 * as behind a pooler.
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

  it('issues nothing and reads no session: 503 with retry-after, and nothing is lost', async () => {
    expect((await person.client.get('/v1/sessions')).status).toBe(200);
    await startedAt("- interval '1 microsecond'");
    const refused = await person.client.get('/v1/sessions');
    await startedAt("+ interval '1 microsecond'");
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await person.client.get('/v1/sessions')).status).toBe(200);
  });
});
