import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication, type Application } from '../../support/applications.js';
import type { Client } from '../../support/client.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { CALLBACK, newCodeFields, postForm } from '../../support/oauth-flow.js';
import { count } from '../../support/rows.js';

const ADA = 'ada@replay.example';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

describe('a replayed code (RFC 6749 §4.1.2), and tokens exchanged for its token', () => {
  let app: TestApp;
  let ada: Client;
  let web: Application;
  let backend: Application;
  /** The form that redeems the code of the present test, and the access token that it got. */
  let redemption: Record<string, string>;
  let token: string;
  const confidential = { token_endpoint_auth_method: 'client_secret_post' };
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled(ADA));
    web = await addApplication(
      app,
      { ...confidential, redirect_uris: [CALLBACK], grant_types: ['authorization_code'] },
      { owner: ADA },
    );
    backend = await addApplication(
      app,
      { ...confidential, redirect_uris: [], response_types: [], grant_types: [EXCHANGE] },
      { owner: ADA },
    );
  });
  beforeEach(async () => {
    redemption = { ...as(web), ...(await newCodeFields(ada, web.clientId)) };
    token = (await redeem()).json.access_token as string;
  });
  afterAll(() => app.close());

  const as = ({ clientId, clientSecret }: Application) => ({
    client_id: clientId,
    client_secret: clientSecret,
  });
  const redeem = () => postForm(app, '/oauth/token', redemption);
  const exchange = (subject = token) =>
    postForm(app, '/oauth/token', {
      ...as(backend),
      grant_type: EXCHANGE,
      subject_token: subject,
      subject_token_type: ACCESS_TOKEN,
    });
  const exchanged = async (subject = token) => {
    const answer = await exchange(subject);
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    return answer.json.access_token as string;
  };
  const statusAtUserinfo = async (bearer: string) =>
    (await app.client().get('/oauth/userinfo', { headers: { authorization: `Bearer ${bearer}` } }))
      .status;
  /** Sets the time of the redemption of this test's code to some seconds ago. */
  const consumedAgo = (seconds: number) =>
    app.dataSource.query(
      `UPDATE oauth_artifacts SET consumed_at = now() - make_interval(secs => $1)
       WHERE model = 'AuthorizationCode' AND consumed_at > now() - interval '5 s'`,
      [seconds],
    );
  const grantOf = (client: Application) => `oauth_grants WHERE client_id = '${client.clientId}'`;

  it('10.13 ends its token at once when it is replayed 0.6 seconds later', async () => {
    await consumedAgo(0.6);
    expect((await redeem()).json.error).toBe('invalid_grant');
    expect(await statusAtUserinfo(token)).toBe(401);
  });

  it('10.13 does not end the token of the first client when it is replayed 0.3 seconds later', async () => {
    await consumedAgo(0.3);
    expect((await redeem()).json.error).toBe('invalid_grant');
    expect(await statusAtUserinfo(token)).toBe(200);
    const beyond = `${grantOf(web)} AND created_at > now() - interval '5 s' AND expires_at > now() + interval '5 s'`;
    // the grant, and so the token, expires within 5 seconds
    expect(await count(app.dataSource, beyond)).toBe(0);
  });

  it('10.3 ends every token that was exchanged for its token, and tokens exchanged for these', async () => {
    const child = await exchanged();
    const grandchild = await exchanged(child);
    await consumedAgo(1);
    await redeem();
    expect(await Promise.all([token, child, grandchild].map(statusAtUserinfo))).toEqual([
      401, 401, 401,
    ]);
    expect(await count(app.dataSource, grantOf(backend))).toBe(0);
    expect((await exchange()).json.error).toBe('invalid_request');
    expect((await exchange(child)).json.error).toBe('invalid_request');
  });

  it('10.3 ends tokens exchanged before and after together with a grant that is about to end', async () => {
    const child = await exchanged();
    await exchanged(child);
    await consumedAgo(0);
    await redeem(); // a replay at once: the token of the first redemption expires within 5 seconds
    expect(await statusAtUserinfo(await exchanged())).toBe(200);
    expect(await count(app.dataSource, grantOf(backend))).toBe(3);
    const beyond = `${grantOf(backend)} AND (expires_at > now() + interval '5 s'
      OR (payload ->> 'exp')::bigint > extract(epoch FROM now()) + 5)`;
    expect(await count(app.dataSource, beyond)).toBe(0);
    await app.dataSource.query(
      `UPDATE oauth_grants SET expires_at = now() WHERE parent_id IS NULL`,
    );
    expect((await exchange()).json.error).toBe('invalid_request');
    await app.dataSource.query('DELETE FROM oauth_grants WHERE parent_id IS NULL');
    expect(await count(app.dataSource, grantOf(backend))).toBe(0);
  });

  it('10.3 gives nothing for a token whose grant ends during the exchange', async () => {
    let pending: ReturnType<typeof exchange> | undefined;
    await app.dataSource.transaction(async (tx) => {
      await tx.query('DELETE FROM oauth_grants WHERE client_id = $1', [web.clientId]);
      pending = exchange();
      await untilWaiting(app.dataSource, 1);
    });
    expect((await pending)?.json.error).toBe('invalid_request');
    expect(await count(app.dataSource, grantOf(backend))).toBe(0);
  });

  it('10.3 ends the children of a grant that is about to end while a child is created', async () => {
    const [parent] = await app.dataSource.query<{ id: Buffer }[]>(
      `SELECT id FROM oauth_grants WHERE client_id = $1 ORDER BY created_at DESC LIMIT 1`,
      [web.clientId],
    );
    await consumedAgo(0);
    let pending: ReturnType<typeof redeem> | undefined;
    await app.dataSource.transaction(async (tx) => {
      await tx.query('SELECT id FROM oauth_grants WHERE id = $1 FOR SHARE', [parent?.id]);
      await tx.query(
        `INSERT INTO oauth_grants (id, parent_id, client_id, user_id, session_id, payload, expires_at)
         SELECT '\\x01', id, $2, user_id, session_id, payload, expires_at FROM oauth_grants WHERE id = $1`,
        [parent?.id, backend.clientId],
      );
      pending = redeem(); // a replay at once
      await untilWaiting(app.dataSource, 1);
    });
    await pending;
    const beyond = `${grantOf(backend)} AND expires_at > now() + interval '5 s'`;
    expect(await count(app.dataSource, beyond)).toBe(0);
  });

  it.each<readonly [string, () => Promise<unknown>]>([
    ['its client revokes it', () => postForm(app, '/oauth/revoke', { ...as(web), token })],
    [
      'its client loses every token',
      () => app.dataSource.query('DELETE FROM oauth_grants WHERE client_id = $1', [web.clientId]),
    ],
  ])('10.3 ends tokens exchanged for a token when %s', async (_, end) => {
    const child = await exchanged();
    const grandchild = await exchanged(child);
    await end();
    expect(await Promise.all([token, child, grandchild].map(statusAtUserinfo))).toEqual([
      401, 401, 401,
    ]);
  });

  it('10.3 does not end the subject token when a token exchanged for it is revoked', async () => {
    const child = await exchanged();
    await postForm(app, '/oauth/revoke', { ...as(backend), token: child });
    expect(await Promise.all([token, child].map(statusAtUserinfo))).toEqual([200, 401]);
  });

  it('10.words writes the audit row of an exchange in the transaction of its token', async () => {
    const [events, grants] = await Promise.all([
      count(app.dataSource, "audit_events WHERE type = 'token_exchange'"),
      count(app.dataSource, "oauth_artifacts WHERE model = 'AccessToken'"),
    ]);
    await app.dataSource.query(
      `ALTER TABLE audit_events ADD CONSTRAINT no_exchange CHECK (type <> 'token_exchange') NOT VALID`,
    );
    try {
      expect((await exchange()).status).toBe(500);
      expect(await count(app.dataSource, "oauth_artifacts WHERE model = 'AccessToken'")).toBe(
        grants,
      );
    } finally {
      await app.dataSource.query('ALTER TABLE audit_events DROP CONSTRAINT no_exchange');
    }
    await exchanged();
    expect(await count(app.dataSource, "audit_events WHERE type = 'token_exchange'")).toBe(
      events + 1,
    );
  });
});
