import { createSign, generateKeyPairSync } from 'node:crypto';
import { calculateJwkThumbprint, decodeJwt, decodeProtectedHeader, exportJWK } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startSts, type RunningSts } from '@svc/stand-ins/sts';
import { CleanUp } from '#domain/admin/clean-up/clean-up.service.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { addApplication } from '../support/applications.js';
import { newAddress, type Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import {
  awsToken,
  claimedBy,
  issuerOf,
  jwksAt,
  listenerOf,
  requestToken,
  resolveNamesBelowLocalhost,
  startDocumentKeyGround,
  startReplicaOf,
  verified,
  type DocumentKeyGround,
} from '../support/issuers.js';
import { orgApi } from '../support/org-api.js';
import { requires } from '../support/programs.js';
import { rawExchange, requestBytes } from '../support/raw-http.js';
import { count, rows } from '../support/rows.js';

/** The errors of jose if the key set lacks the key of a token, or if the issuer differs. */
const NOT_VERIFIED = /no applicable key found|unexpected "iss" claim value/;

const ROLE = 'arn:aws:iam::123456789012:role/engineer';

requires('moto').describe('a token of the issuer of an organization', () => {
  let ground: DocumentKeyGround;
  let app: TestApp;
  let replica: TestApp;
  let listener: string;
  let ada: Client;
  let eve: Client;
  const restore = resolveNamesBelowLocalhost();
  beforeAll(async () => {
    ground = await startDocumentKeyGround();
    app = await startTestApp({ environment: ground.environment });
    const port = await freePort();
    listener = listenerOf(port);
    replica = await startReplicaOf(app, port, { environment: ground.environment });
    ({ client: ada } = await claimedBy(app, 'ada@a.example', { label: 'of-a', active: true }));
    ({ client: eve } = await claimedBy(app, 'eve@b.example', { label: 'of-b', active: true }));
  });
  afterAll(async () => {
    await replica.close();
    await app.close();
    await ground.close();
    restore();
  });

  const issuerA = () => issuerOf(app, 'of-a');
  const issuerB = () => issuerOf(app, 'of-b');

  it('verifies by its own issuer and JWK Set alone: never by those of another, or of the service', async () => {
    const [tokenA, tokenB] = [await awsToken(ada), await awsToken(eve)];
    const [jwksA, jwksB] = [await jwksAt(app, 'of-a'), await jwksAt(app, 'of-b')];
    const main = (await app.client().get('/oauth/jwks')).json;
    expect(await verified(tokenA, issuerA(), jwksA)).toMatchObject({
      iss: issuerA(),
      sub: 'ada@a.example',
      aud: 'sts.amazonaws.com',
      hardware_verified: true,
    });
    expect(decodeProtectedHeader(tokenA)).toEqual({
      alg: 'RS256',
      kid: jwksA.keys[0]?.kid,
      typ: 'JWT',
    });
    for (const [token, issuer, jwks] of [
      [tokenA, issuerA(), jwksB],
      [tokenB, issuerB(), jwksA],
      [tokenA, issuerB(), jwksA],
      [tokenA, issuerA(), main],
      [tokenA, app.baseUrl, main],
    ] as const) {
      await expect(verified(token, issuer, jwks)).rejects.toThrow(NOT_VERIFIED);
    }
    const { client: carol } = await app.enrolled('carol@none.example');
    const ofService = await awsToken(carol);
    expect(await verified(ofService, app.baseUrl, main)).toMatchObject({ iss: app.baseUrl });
    await expect(verified(ofService, app.baseUrl, jwksA)).rejects.toThrow(NOT_VERIFIED);
  });

  it('is on record with its issuer and key before it is signed', async () => {
    const token = await awsToken(ada);
    const [event] = await rows<{ details: object }>(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'aws_credential' AND details ->> 'jti' = $1",
      [decodeJwt(token).jti],
    );
    expect(event?.details).toMatchObject({
      issuer_label: 'of-a',
      kid: decodeProtectedHeader(token).kid,
      source_identity: 'ada@a.example',
    });
  });

  it('is accepted by STS for a provider of its issuer, and no other organization’s token is', async () => {
    let sts: RunningSts | undefined;
    try {
      sts = await startSts({
        provider: { issuer: issuerA(), audiences: ['sts.amazonaws.com'] },
        roles: [{ arn: ROLE, trusts: () => true }],
      });
      const { url } = sts;
      const assume = async (token: string) => {
        const response = await fetch(url, {
          method: 'POST',
          body: new URLSearchParams({
            Action: 'AssumeRoleWithWebIdentity',
            Version: '2011-06-15',
            RoleArn: ROLE,
            RoleSessionName: 'session',
            WebIdentityToken: token,
          }),
        });
        return { status: response.status, xml: await response.text() };
      };
      const accepted = await assume(await awsToken(ada));
      expect(accepted).toMatchObject({ status: 200 });
      expect(accepted.xml).toContain(`<Provider>${issuerA()}</Provider>`);
      expect(await assume(await awsToken(eve))).toMatchObject({ status: 400 });
      const foreign = await forged(await awsToken(eve), { iss: issuerA() });
      expect(await assume(foreign)).toMatchObject({ status: 400 });
    } finally {
      await sts?.close();
    }
  });

  it('opens nothing of the service: no API, no introspection, no userinfo, no logout', async () => {
    const token = await awsToken(ada);
    const headers = { authorization: `Bearer ${token}` };
    const plain = app.client();
    expect((await plain.get('/v1/keys', { headers })).status).toBe(401);
    expect((await plain.get('/oauth/userinfo', { headers })).status).toBe(401);
    const metadata = {
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
      token_endpoint_auth_method: 'client_secret_post',
    };
    const { clientId, clientSecret } = await addApplication(app, metadata, {
      owner: 'ada@a.example',
    });
    const credentials = { client_id: clientId, client_secret: clientSecret };
    const introspected = await fetch(`${app.baseUrl}/oauth/introspect`, {
      method: 'POST',
      headers: { 'x-forwarded-for': newAddress() },
      body: new URLSearchParams({ token, ...credentials }),
    });
    expect([introspected.status, await introspected.json()]).toEqual([200, { active: false }]);
    const hint = new URLSearchParams({ id_token_hint: token });
    const logout = await ada.get(`/oauth/logout?${hint.toString()}`);
    expect(logout.status).toBe(400);
    expect((await ada.get('/v1/keys')).status).toBe(200);
  });

  it('is refused, not signed by the service, where its key is missing', async () => {
    const { client: dan } = await claimedBy(app, 'dan@c.example', { label: 'of-c', active: true });
    await rows(app.dataSource, "DELETE FROM organization_issuer_keys WHERE label = 'of-c'");
    const refused = await requestToken(dan);
    expect([refused.status, refused.json.code]).toEqual([403, 'issuance_refused']);
    expect(refused.json.detail).toContain('signing key');
  });

  /**
   * Requests tokens in one user's session from both replicas by four concurrent loops, until `stop`
   * is called.
   */
  function load(browser: Client) {
    const tokens: string[] = [];
    const failures: string[] = [];
    const over = new AbortController();
    const run = async (request: () => ReturnType<typeof tokenAt>) => {
      while (!over.signal.aborted) {
        const answer = await request();
        if (answer.status === 200) tokens.push(answer.json.id_token);
        else failures.push(answer.text);
      }
    };
    const runs = [0, 1, 2, 3].map((n) =>
      run(() => tokenAt(n % 2 ? listener : app.baseUrl, browser)),
    );
    return {
      tokens,
      failures,
      /** Resolves when `more` further tokens have been issued, or when a request has failed. */
      async further(more: number) {
        const until = tokens.length + more;
        while (tokens.length < until && failures.length === 0) await requestToken(browser);
      },
      async stop() {
        over.abort();
        await Promise.all(runs);
      },
    };
  }

  /** Moves the times of a label's keys back by an interval, as if that time had passed. */
  const pass = (label: string, interval: string) =>
    rows(
      app.dataSource,
      `UPDATE organization_issuer_keys
       SET signs_from = signs_from - $2::interval, published_until = published_until - $2::interval
       WHERE label = $1`,
      [label, interval],
    );

  it('verifies throughout a planned rotation under load: 0 requests fail and 0 tokens', async () => {
    const { client: fay } = await claimedBy(app, 'fay@d.example', { label: 'of-d', active: true });
    const running = load(fay);
    await running.further(20);
    const before = await jwksAt(app, 'of-d');
    expect((await orgApi(fay, 'POST', '/issuer/rotate', {})).status).toBe(200);
    // stands for a verifier that caches the key set for a day
    const cached = await jwksAt(app, 'of-d', listener);
    await running.further(20);
    await pass('of-d', '23 hours 59 minutes');
    await running.further(20);
    const [first] = before.keys;
    expect(running.tokens.every((token) => decodeProtectedHeader(token).kid === first?.kid)).toBe(
      true,
    );
    await pass('of-d', '1 minute');
    await running.further(40);
    await running.stop();
    const after = await jwksAt(app, 'of-d');
    const keyIds = new Set(running.tokens.map((token) => decodeProtectedHeader(token).kid));
    expect(keyIds).toEqual(new Set(cached.keys.map(({ kid }) => kid)));
    expect(keyIds.size).toBe(2);
    for (const token of running.tokens) {
      await verified(token, issuerOf(app, 'of-d'), cached);
      await verified(token, issuerOf(app, 'of-d'), after);
    }
    expect(running.failures).toEqual([]);
    await pass('of-d', '1 hour');
    expect((await jwksAt(app, 'of-d', listener)).keys.map(({ kid }) => kid)).toEqual([
      decodeProtectedHeader(running.tokens.at(-1) ?? '').kid,
    ]);
    expect(await count(app.dataSource, "organization_issuer_keys WHERE label = 'of-d'")).toBe(2);
    await app.nest.get(CleanUp, { strict: false }).run();
    expect(await count(app.dataSource, "organization_issuer_keys WHERE label = 'of-d'")).toBe(1);
  });

  it('fails at once after an emergency rotation under load, on every replica; 0 requests fail', async () => {
    const { client: gil } = await claimedBy(app, 'gil@e.example', { label: 'of-e', active: true });
    const issuer = issuerOf(app, 'of-e');
    const [compromised] = (await jwksAt(app, 'of-e')).keys;
    const running = load(gil);
    await running.further(20);
    const rotated = await orgApi(gil, 'POST', '/issuer/rotate', { emergency: true });
    const [now, there] = [await jwksAt(app, 'of-e'), await jwksAt(app, 'of-e', listener)];
    expect(now).toEqual(there);
    expect(now.keys.map(({ kid }) => kid)).toEqual([rotated.json.issuer.keys[0].kid]);
    const asked = [await awsToken(gil), (await tokenAt(listener, gil)).json.id_token];
    for (const token of asked) await verified(token, issuer, now);
    await running.further(20);
    await running.stop();
    const old = running.tokens.filter(
      (token) => decodeProtectedHeader(token).kid === compromised?.kid,
    );
    expect(old.length).toBeGreaterThanOrEqual(20);
    expect(old.length).toBeLessThan(running.tokens.length);
    for (const token of old)
      await expect(verified(token, issuer, now)).rejects.toThrow(NOT_VERIFIED);
    expect(running.failures).toEqual([]);
  });
});

/**
 * Requests a token at the listener of a replica, like a load balancer: with the cookie of a
 * browser's session and the host name of the service.
 */
async function tokenAt(listener: string, browser: Client) {
  const { baseUrl } = browser;
  const headers = [
    `Host: ${new URL(baseUrl).host}`,
    `Origin: ${baseUrl}`,
    `Cookie: svc_session=${browser.cookie('svc_session') ?? ''}`,
    `X-Forwarded-For: ${newAddress()}`,
    'Content-Type: application/json',
    'Content-Length: 2',
  ];
  const bytes = requestBytes(baseUrl, 'POST /v1/credentials/aws/token', headers, '{}');
  const { status, body } = await rawExchange(listener, bytes);
  return { status, text: body, json: JSON.parse(body) as { readonly id_token: string } };
}

/** Returns a token with changed claims, signed by a key that the service does not publish. */
async function forged(token: string, changes: object): Promise<string> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 3072 });
  const kid = await calculateJwkThumbprint(await exportJWK(publicKey));
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const signed = `${encode({ alg: 'RS256', kid })}.${encode({ ...decodeJwt(token), ...changes })}`;
  return `${signed}.${createSign('sha256').update(signed).sign(privateKey, 'base64url')}`;
}
