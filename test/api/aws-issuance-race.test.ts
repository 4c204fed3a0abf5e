import type { EntityManager } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AwsTokens, type AwsTokenSession } from '#domain/aws/aws-tokens.service.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Answer } from '../support/client.js';
import { deprovision } from '../support/deprovisioning.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { count, rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';

const PATH = '/v1/credentials/aws/token';
const ORIGIN = { requestId: 'request-1', ip: '192.0.2.7', userAgent: 'test' };
const INACTIVE = { Operations: [{ op: 'replace', path: 'active', value: false }] };
const REFUSED = { status: 'rejected', reason: { code: 'unauthenticated' } };

describe('issuing a token for AWS during a de-provisioning', () => {
  let app: TestApp;
  let session: AwsTokenSession;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    const { client } = await app.enrolled(`u${newAddress().replaceAll('.', '-')}@race.example`);
    const [row] = await rows<{ id: string; user_id: string; email: string }>(
      app.dataSource,
      `SELECT s.id, s.user_id, u.email FROM sessions s JOIN users u ON u.id = s.user_id
       WHERE s.token_hash = sha256($1)`,
      [Buffer.from(client.cookie('svc_session') ?? '')],
    );
    if (!row) throw new Error('the session has no row');
    session = {
      sessionId: row.id,
      userId: row.user_id,
      email: row.email,
      hardwareAaguid: null,
      amr: ['hwk', 'pin', 'user'],
      acr: null,
      authTime: new Date(),
      denied: { isOfDevice: false, challenge: { scheme: 'Bearer' } },
    };
  });

  const issue = () =>
    app.nest
      .get(AwsTokens, { strict: false })
      .issue(session, { arn: null, isReadOnly: false }, ORIGIN);
  const issuedNow = () =>
    count(app.dataSource, "audit_events WHERE type = 'aws_credential' AND subject_id = $1", [
      session.userId,
    ]);

  /**
   * Ends the session in a transaction, requests a token, commits when the request waits, and
   * returns the outcome.
   */
  async function attemptDuring(end: (tx: EntityManager) => Promise<unknown>): Promise<unknown> {
    const { attempt } = await app.dataSource.transaction(async (tx) => {
      await end(tx);
      const attempted = Promise.allSettled([issue()]);
      await untilWaiting(app.dataSource, 1);
      return { attempt: attempted };
    });
    return attempt;
  }

  it.each(['remove', 'deactivate', 'revokeCredentials'] as const)(
    'waits for a %s that came first, and is refused',
    async (act) => {
      const attempt = await attemptDuring((tx) =>
        deprovision(app)[act](tx, {
          userId: session.userId,
          reason: 'a test',
          revokedBy: 'scim',
          audit: { type: 'scim_operation', actorId: null, origin: ORIGIN },
        }),
      );
      expect(attempt).toMatchObject([REFUSED]);
      expect(await issuedNow()).toBe(0);
    },
  );

  it('waits for a logout that came first, and is refused', async () => {
    const attempt = await attemptDuring((tx) =>
      tx.query('DELETE FROM sessions WHERE id = $1', [session.sessionId]),
    );
    expect(attempt).toMatchObject([REFUSED]);
  });

  it('issues none after the end of a de-provisioning during a storm of requests', async () => {
    let issued = 0;
    const underWay = Promise.withResolvers<void>();
    const storm = Array.from({ length: 8 }, async () => {
      for (;;) {
        await issue(); // the loop ends when this throws, because the request is refused
        issued += 1;
        if (issued === 20) underWay.resolve();
      }
    });
    const refusals = Promise.allSettled(storm);
    await underWay.promise;
    await app.dataSource.query('DELETE FROM users WHERE id = $1', [session.userId]);
    const onRecord = await issuedNow();
    expect(await refusals).toMatchObject(storm.map(() => REFUSED));
    expect([issued, await issuedNow()]).toEqual([onRecord, onRecord]);
  });
});

describe('a user that SCIM de-provisions', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  beforeAll(async () => {
    app = await startTestApp();
    organization = await foundOrganization(app, 'leavers.example');
  });
  afterAll(() => app.close());

  it.each([
    ['deleted', (id: string) => organization.scim('DELETE', `/Users/${id}`)],
    ['deactivated', (id: string) => organization.scim('PATCH', `/Users/${id}`, INACTIVE)],
  ] as const)('is refused by the next request after being %s', async (name, end) => {
    const email = `${name}@leavers.example`;
    const created = await organization.scim('POST', '/Users', { userName: email });
    const { client } = await app.enrolled(email);
    const ask = (): Promise<Answer> => client.post(PATH, {}, { address: newAddress() });
    expect((await ask()).status).toBe(200);
    expect((await end(created.json.id)).status).toBeLessThan(300);
    expect((await ask()).status).toBe(401);
  });
});
