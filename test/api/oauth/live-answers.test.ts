import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { BatchedQueries } from '../../../src/domain/oauth/grants/batched-queries.service.js';
import { deprovision } from '../../support/deprovisioning.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { addApplication, type Application } from '../../support/applications.js';
import { newAddress } from '../../support/client.js';
import { CALLBACK, newCodeFields, newPkce, postForm } from '../../support/oauth-flow.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { count, rows } from '../../support/rows.js';

const ADA = 'ada@live.example';
const SCRAPER = 'a token for a scraper';
const OWNER = 'owner@live.example';

describe('the current state of a token decides each response', () => {
  let app: TestApp;
  let ada: EnrolledUser;
  let application: Application;
  let token: string;
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_METRICS_BEARER_TOKEN: SCRAPER } });
    ada = await app.enrolled(ADA);
    await app.enrolled(OWNER);
    application = await addApplication(
      app,
      { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'client_secret_basic' },
      { owner: OWNER },
    );
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    token = await newToken();
  });

  const basic = () => ({
    authorization: `Basic ${Buffer.from(`${application.clientId}:${application.clientSecret}`).toString('base64')}`,
  });
  const isActive = async () =>
    (await postForm(app, '/oauth/introspect', { token }, basic())).json.active as boolean;
  const userinfo = async () => {
    const headers = { authorization: `Bearer ${token}` };
    return (await app.client().get('/oauth/userinfo', { headers })).status;
  };

  const newCode = () => newCodeFields(ada.client, application.clientId);

  async function newToken(): Promise<string> {
    const { json } = await postForm(app, '/oauth/token', await newCode(), basic());
    return json.access_token as string;
  }

  it.each([
    [
      'an inactive account',
      `UPDATE users SET active = false WHERE email = '${ADA}'`,
      `UPDATE users SET active = true WHERE email = '${ADA}'`,
    ],
    [
      'an expired session',
      `UPDATE sessions SET expires_at = expires_at - interval '1 day'`,
      `UPDATE sessions SET expires_at = expires_at + interval '1 day'`,
    ],
    [
      'an address of a domain that is not proven any more',
      `UPDATE organization_domains SET verified_at = NULL WHERE domain = 'live.example'`,
      `UPDATE organization_domains SET verified_at = now() WHERE domain = 'live.example'`,
    ],
  ])('with %s it is inactive, and opens no API', async (_, end, restore) => {
    expect([await isActive(), await userinfo()]).toEqual([true, 200]);
    await app.dataSource.query(end);
    const after = [await isActive(), await userinfo()];
    await app.dataSource.query(restore);
    expect(after).toEqual([false, 401]);
    expect([await isActive(), await userinfo()]).toEqual([true, 200]);
  });

  it('a revocation ends it, and leaves one row in the audit log, also when it is repeated', async () => {
    const revocations = `audit_events WHERE type = 'oauth_token_revoked'`;
    expect(await count(app.dataSource, revocations)).toBe(0);
    for (let time = 0; time < 2; time += 1) {
      expect((await postForm(app, '/oauth/revoke', { token }, basic())).status).toBe(200);
    }
    expect([await isActive(), await userinfo()]).toEqual([false, 401]);
    const found = await rows<{ subject: string; details: object }>(
      app.dataSource,
      `SELECT u.email AS subject, a.details FROM ${revocations.replace('audit_events', 'audit_events a JOIN users u ON u.id = a.subject_id')}`,
    );
    expect(found).toEqual([
      { subject: ADA, details: expect.objectContaining({ client_id: application.clientId }) },
    ]);
  });

  it('a code whose grant ends right after its consumption is refused, without a fault of the service', async () => {
    const fields = await newCode();
    const statements = app.nest.get(BatchedQueries, { strict: false });
    const consume = statements.consume.bind(statements);
    const [consumed, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    vi.spyOn(statements, 'consume').mockImplementationOnce(async (key) => {
      const isConsumed = await consume(key);
      consumed.resolve();
      await ended.promise;
      return isConsumed;
    });
    const answered = postForm(app, '/oauth/token', fields, basic());
    await consumed.promise;
    const answer = await whileDeleting(
      'oauth_grants WHERE client_id = $1',
      application.clientId,
      () => {
        ended.resolve();
        return answered;
      },
    );
    expect([answer.status, answer.json.error]).toEqual([400, 'invalid_grant']);
  });

  it('an authorization of a client that is deleted meanwhile is refused, without a fault of the service', async () => {
    const { clientId } = await addApplication(app, { redirect_uris: [CALLBACK] }, { owner: ADA });
    const { challenge } = newPkce();
    const query = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    const answer = await whileDeleting('oauth_clients WHERE id = $1', clientId, () =>
      ada.client.get(`/oauth/authorize?${query.toString()}`, { address: newAddress() }),
    );
    const location = URL.parse(answer.headers.get('location') ?? '');
    expect([answer.status, location?.searchParams.get('error')]).toEqual([303, 'access_denied']);
  });

  it('an authorization whose session ends before its code is stored is denied', async () => {
    const email = 'gone@live-answers.example';
    const { client } = await app.enrolled(email);
    const { clientId } = await addApplication(app, { redirect_uris: [CALLBACK] }, { owner: email });
    const batched = app.nest.get(BatchedQueries, { strict: false });
    const write = batched.writeArtifact.bind(batched);
    const spy = vi.spyOn(batched, 'writeArtifact').mockImplementation(async (artifact) => {
      if (artifact.model === 'AuthorizationCode') {
        await app.dataSource.query('DELETE FROM sessions WHERE user_id = $1', [artifact.userId]);
      }
      return write(artifact);
    });
    const query = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
    });
    const answer = await client.get(`/oauth/authorize?${query.toString()}`);
    spy.mockRestore();
    const location = URL.parse(answer.headers.get('location') ?? '');
    expect([answer.status, location?.searchParams.get('error')]).toEqual([303, 'access_denied']);
  });

  /**
   * Deletes rows in a transaction, starts a request, and commits when the request waits for a
   * deleted row. Returns its result.
   */
  async function whileDeleting<Result>(
    fromWhere: string,
    parameter: string,
    ask: () => Promise<Result>,
  ): Promise<Result> {
    let asked: Promise<Result> | undefined;
    await app.dataSource.transaction(async (tx) => {
      await tx.query(`DELETE FROM ${fromWhere}`, [parameter]);
      asked = ask();
      await untilWaiting(app.dataSource, 1);
    });
    return asked as Promise<Result>;
  }

  it('a code that became a token is counted', async () => {
    const counted = async () => {
      const { text } = await app.client().get('/metrics', {
        headers: { authorization: `Bearer ${SCRAPER}` },
      });
      const line = /svc_auth_events_total\{event_type="authorization_code_success"\} (\d+)/.exec(
        text,
      );
      return Number(line?.[1] ?? 0);
    };
    const before = await counted();
    await newToken();
    expect(await counted()).toBe(before + 1);
  });

  it('the discovery document states only supported features', async () => {
    const { json } = await app.client().get('/.well-known/openid-configuration');
    expect(json.grant_types_supported).not.toContain('refresh_token');
    expect(json.claims_supported).toContain('sid');
    expect(json.response_modes_supported).toEqual(
      expect.not.arrayContaining([expect.stringMatching('form_post')]),
    );
    for (const endpoint of ['introspection', 'revocation']) {
      for (const what of ['methods', 'signing_alg_values']) {
        expect(json[`${endpoint}_endpoint_auth_${what}_supported`]).toEqual(
          json[`token_endpoint_auth_${what}_supported`],
        );
      }
    }
    const other = await app.client().get('/.well-known/oauth-authorization-server');
    expect(other.json).toEqual(json);
  });

  it('a client that registered itself gets no client credentials tokens, nor any for a touch', async () => {
    const { json } = await app.client().post('/oauth/register', {
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'client_secret_post',
    });
    const { client_id, client_secret } = json as { client_id: string; client_secret: string };
    for (const fields of [
      { grant_type: 'client_credentials' },
      { grant_type: 'urn:svc:params:oauth:grant-type:fido2', assertion: 'e30', state: 'x' },
      { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: token },
      { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: 'x' },
    ]) {
      const answer = await postForm(app, '/oauth/token', { ...fields, client_id, client_secret });
      expect([fields.grant_type, answer.status, answer.json.error]).toEqual([
        fields.grant_type,
        400,
        'unauthorized_client',
      ]);
    }
    const challenge = await postForm(app, '/oauth/fido2/challenge', { client_id });
    expect([challenge.status, challenge.json.error]).toEqual([400, 'unauthorized_client']);
  });

  it('a service whose owner is deactivated has no active token, issued before or after', async () => {
    const owner = 'owner@service.example';
    await app.enrolled(owner);
    const [person] = await rows<{ id: string }>(
      app.dataSource,
      'SELECT id FROM users WHERE email = $1',
      [owner],
    );
    const service = await addApplication(
      app,
      {
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        token_endpoint_auth_method: 'client_secret_post',
      },
      { owner },
    );
    const credentials = { client_id: service.clientId, client_secret: service.clientSecret };
    const over = new AbortController();
    let issued = 0;
    let attempts = 0;
    const workers = Array.from({ length: 12 }, async () => {
      while (!over.signal.aborted) {
        attempts += 1;
        const fields = { grant_type: 'client_credentials', ...credentials };
        const { status, text } = await postForm(app, '/oauth/token', fields);
        if (status === 200) issued += 1;
        else if (status !== 401 && status !== 400) throw new Error(`${status} ${text}`);
      }
    });
    await expect.poll(() => issued).toBeGreaterThan(24);
    await app.dataSource.transaction((tx) =>
      deprovision(app).deactivate(tx, {
        userId: person?.id ?? '',
        reason: 'a test',
        revokedBy: 'scim',
        audit: {
          type: 'scim_operation',
          actorId: null,
          origin: { requestId: newAddress(), ip: undefined, userAgent: undefined },
          details: {},
        },
      }),
    );
    const left = 'oauth_artifacts WHERE client_id = $1';
    expect(await count(app.dataSource, left, [service.clientId])).toBe(0);
    const before = attempts;
    await expect.poll(() => attempts).toBeGreaterThan(before + 4 * 12); // the workers go on sending
    over.abort();
    await Promise.all(workers);
    expect(await count(app.dataSource, left, [service.clientId])).toBe(0);
  });
});
