import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CleanUp } from '../../../src/domain/admin/clean-up/clean-up.service.js';
import { BatchedQueries } from '../../../src/domain/oauth/grants/batched-queries.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import {
  CALLBACK,
  assertionFields,
  authorize,
  fapiMetadata,
  newClientKeys,
  newDpopKey,
  newPkce,
  parameterOf,
  postForm,
  type ClientKeys,
} from '../../support/oauth-flow.js';
import { count } from '../../support/rows.js';

const ADA = 'ada@once.example';

/**
 * Sends 20 requests at once, and counts the outcomes: the status, and the error if there is one.
 */
async function twenty(act: () => Promise<Answer>): Promise<Record<string, number>> {
  const answers = await Promise.all(Array.from({ length: 20 }, act));
  const outcomes: Record<string, number> = {};
  for (const { status, json } of answers) {
    const outcome = `${status} ${(json as { error?: string } | undefined)?.error ?? ''}`.trim();
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
  return outcomes;
}

describe('single use under 20 concurrent requests', () => {
  let app: TestApp;
  let ada: Client;
  let keys: ClientKeys;
  let clientId: string;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled(ADA));
    keys = await newClientKeys();
    ({ clientId } = await addApplication(app, fapiMetadata(keys), { owner: ADA }));
  });
  afterAll(() => app.close());

  const pushed = async (challenge: string, more: Readonly<Record<string, string>> = {}) => {
    const answer = await postForm(app, '/oauth/par', {
      ...(await assertionFields(app, clientId, keys)),
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: challenge,
      code_challenge_method: 'S256',
      ...more,
    });
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
    return answer.json.request_uri as string;
  };
  const newCode = async () => {
    const { verifier, challenge } = newPkce();
    const url = await authorize(ada, { client_id: clientId, request_uri: await pushed(challenge) });
    return { code: parameterOf(url, 'code'), verifier };
  };
  const redemption = async ({ code, verifier }: { code: string; verifier: string }) => ({
    ...(await assertionFields(app, clientId, keys)),
    grant_type: 'authorization_code',
    code,
    code_verifier: verifier,
    redirect_uri: CALLBACK,
  });
  const tokenUrl = () => `${app.baseUrl}/oauth/token`;

  it('a code gives one token, and the other requests revoke it', async () => {
    const code = await newCode();
    const dpop = await newDpopKey();
    const outcomes = await twenty(async () =>
      postForm(app, '/oauth/token', await redemption(code), {
        dpop: await dpop.proof('POST', tokenUrl()),
      }),
    );
    expect(outcomes).toEqual({ '200': 1, '400 invalid_grant': 19 });
    // The replays end the grant, and with it the token of the one redemption, within seconds (RFC
    // 6749 §4.1.2).
    const alive = `oauth_grants WHERE client_id = '${clientId}'
      AND (expires_at > now() + interval '5 s' OR (payload ->> 'exp')::bigint > extract(epoch FROM now()) + 6)`;
    expect(await count(app.dataSource, alive)).toBe(0);
    await app.dataSource.query(
      "UPDATE oauth_artifacts SET consumed_at = now() - interval '30 s' WHERE model = 'AuthorizationCode'",
    );
    const again = await postForm(app, '/oauth/token', await redemption(code), {
      dpop: await dpop.proof('POST', tokenUrl()),
    });
    expect(again.json.error).toBe('invalid_grant');
    const grants = `oauth_grants WHERE client_id = '${clientId}'`;
    // a replay 30 s later ends the grant at once
    expect(await count(app.dataSource, grants)).toBe(0);
  });

  it('a pushed request gives one code', async () => {
    const requestUri = await pushed(newPkce().challenge);
    const outcomes: Record<string, number> = {};
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const query = new URLSearchParams({ client_id: clientId, request_uri: requestUri });
        const answer = await ada.get(`/oauth/authorize?${query.toString()}`, {
          address: newAddress(),
        });
        const location = answer.headers.get('location');
        const outcome = location?.includes('code=') ? 'code' : 'refused';
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      }),
    );
    expect(outcomes).toEqual({ code: 1, refused: 19 });
  });

  it('a pushed request gives one code in two tabs of a browser, with a clean-up in between', async () => {
    const requestUri = await pushed(newPkce().challenge, { prompt: 'consent' });
    const query = new URLSearchParams({ client_id: clientId, request_uri: requestUri });
    const open = async (tab: Client) => {
      const answer = await tab.get(`/oauth/authorize?${query.toString()}`);
      return answer.headers.get('location') ?? '';
    };
    const consent = async (tab: Client, interaction: string) => {
      const agreed = await tab.post(`${interaction}/consent`, {}, { address: newAddress() });
      const answer = await tab.get(agreed.json.redirect_to as string);
      return answer.headers.get('location') ?? '';
    };
    const afterAMinute = async () => {
      await app.dataSource.query(
        `UPDATE oauth_artifacts SET expires_at = expires_at - interval '61 s'
         WHERE model = 'PushedAuthorizationRequest'`,
      );
      await app.nest.get(CleanUp, { strict: false }).run();
    };
    await open(ada); // the browser gets its session of the OAuth library
    // Each tab has cookies of its own for its interaction, and both share the session.
    const [one, other] = [ada.copy(), ada.copy()];
    const [first, second] = [await open(one), await open(other)];
    await afterAMinute();
    expect(await consent(one, first)).toContain('code=');
    for (const name of ['svc_op', 'svc_op.sig']) other.setCookie(name, one.cookie(name) ?? '');
    await afterAMinute();
    expect(await consent(other, second)).toContain('error=invalid_request_uri');
  });

  it('a pushed request whose row is gone counts as used', async () => {
    const requestUri = await pushed(newPkce().challenge, { prompt: 'consent' });
    const query = new URLSearchParams({ client_id: clientId, request_uri: requestUri });
    const waiting = await ada.get(`/oauth/authorize?${query.toString()}`);
    await app.dataSource.query(
      `DELETE FROM oauth_artifacts WHERE model = 'PushedAuthorizationRequest'`,
    );
    const interaction = waiting.headers.get('location') ?? '';
    const agreed = await ada.post(`${interaction}/consent`, {}, { address: newAddress() });
    const answer = await ada.get(agreed.json.redirect_to as string);
    expect(answer.headers.get('location')).toContain('error=invalid_request_uri');
  });

  it('a client assertion authenticates one request', async () => {
    const fields = { ...(await assertionFields(app, clientId, keys)), token: 'unknown' };
    const outcomes = await twenty(() => postForm(app, '/oauth/introspect', fields));
    expect(outcomes).toEqual({ '200': 1, '401 invalid_client': 19 });
  });

  it('a DPoP proof is accepted for one request', async () => {
    const dpop = await newDpopKey();
    const { clientId: service, clientSecret } = await addApplication(
      app,
      { redirect_uris: [], grant_types: ['client_credentials'], response_types: [] },
      { owner: ADA },
    );
    const proof = await dpop.proof('POST', tokenUrl());
    const fields = { grant_type: 'client_credentials', client_id: service };
    const basic = Buffer.from(`${service}:${clientSecret}`).toString('base64');
    const outcomes = await twenty(() =>
      postForm(app, '/oauth/token', fields, { dpop: proof, authorization: `Basic ${basic}` }),
    );
    expect(outcomes).toEqual({ '200': 1, '400 invalid_grant': 19 });
  });

  it('a proof dated 290 seconds ahead is stored until it can no longer be accepted', async () => {
    const dpop = await newDpopKey();
    const { clientId: service, clientSecret } = await addApplication(
      app,
      { redirect_uris: [], grant_types: ['client_credentials'], response_types: [] },
      { owner: ADA },
    );
    const basic = Buffer.from(`${service}:${clientSecret}`).toString('base64');
    const proof = await dpop.proof('POST', tokenUrl(), {
      iat: Math.floor(Date.now() / 1000) + 290,
    });
    const ask = () =>
      postForm(
        app,
        '/oauth/token',
        { grant_type: 'client_credentials', client_id: service },
        { dpop: proof, authorization: `Basic ${basic}` },
      );
    expect((await ask()).status).toBe(200);
    // Lets 320 seconds pass by the clock of the database, which alone decides if a recorded id has
    // expired.
    await app.dataSource.query(
      "UPDATE oauth_replays SET expires_at = expires_at - interval '320 s'",
    );
    const replayed = await ask();
    expect([replayed.status, replayed.json.error]).toEqual([400, 'invalid_grant']);
    const [row] = await app.dataSource.query<{ left: number }[]>(
      'SELECT max(extract(epoch FROM expires_at - now()))::int AS left FROM oauth_replays',
    );
    expect(row?.left).toBeGreaterThan(270); // the proof is valid for 270 more seconds
  });

  it('an id is spent once in any batch, and again after its expiry', async () => {
    const replays = app.nest.get(BatchedQueries, { strict: false });
    const soon = new Date(Date.now() + 60_000);
    const won = await Promise.all(Array.from({ length: 20 }, () => replays.spend('ab', 'c', soon)));
    expect(won.filter(Boolean)).toHaveLength(1);
    expect(await replays.spend('a', 'bc', soon)).toBe(true);
    expect(await replays.spend('x', 'y', new Date(Date.now() - 1000))).toBe(true);
    expect(await replays.spend('x', 'y', soon)).toBe(true);
    expect(await replays.spend('x', 'y', soon)).toBe(false);
  });
});
