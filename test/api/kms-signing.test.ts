import { generateKeyPairSync, sign } from 'node:crypto';
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { addApplication, type Application } from '../support/applications.js';
import { newAddress, type Client } from '../support/client.js';
import { startFaultProxy, type Fault, type FaultProxy } from '../support/fault-proxy.js';
import { kmsAdmin, useMotoCredentials, type KmsAdmin } from '../support/kms.js';
import { kmsAnswer, kmsError } from '../support/kms-faults.js';
import { startMoto, type Moto } from '../support/moto.js';
import { CALLBACK, authorize, newCodeFields, postForm } from '../support/oauth-flow.js';
import { requires } from '../support/programs.js';
import { count } from '../support/rows.js';

const ADA = 'ada@kms.example';
const RESOURCE = 'https://orders.example/api';
const AWS = '/v1/credentials/aws/token';
const ACTIVE = `oauth_artifacts WHERE model = 'AccessToken'`;

requires('moto').describe('tokens that AWS KMS signs', () => {
  let moto: Moto;
  let admin: KmsAdmin;
  let proxy: FaultProxy;
  let app: TestApp;
  let ada: Client;
  let web: Application;
  let service: Application;
  let ec: string;
  let rsa: string;
  const restore = useMotoCredentials();
  beforeAll(async () => {
    moto = await startMoto();
    admin = await kmsAdmin(moto.endpoint);
    proxy = await startFaultProxy(moto.endpoint);
    [ec, rsa] = [await admin.create('ECC_NIST_P256'), await admin.create('RSA_3072')];
    app = await startTestApp({
      environment: {
        SVC_OIDC_SIGNING_KMS_KEY_ID: ec,
        SVC_OIDC_RSA_SIGNING_KMS_KEY_ID: rsa,
        AWS_ENDPOINT_URL_KMS: proxy.endpoint,
        SVC_DB_MAX_CONNECTIONS: '5',
      },
      kmsLimits: {
        attempts: 2,
        attemptTimeout: 900,
        callTimeout: 1500,
        firstPause: 1,
        longestPause: 5,
        firstOpening: 20,
        longestOpening: 40,
      },
    });
    ({ client: ada } = await app.enrolled(ADA));
    const metadata = { token_endpoint_auth_method: 'client_secret_post' };
    web = await addApplication(
      app,
      {
        ...metadata,
        redirect_uris: [CALLBACK],
        grant_types: ['authorization_code'],
        id_token_signed_response_alg: 'ES256',
        authorization_signed_response_alg: 'ES256',
      },
      { owner: ADA },
    );
    service = await addApplication(
      app,
      {
        ...metadata,
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        svc_resource_scopes: 'orders:read',
      },
      { kind: 'first-party' },
    );
  });
  afterAll(async () => {
    await app.close();
    await proxy.close();
    await moto.close();
    restore();
  });
  afterEach(async () => {
    proxy.fault = 'none';
    await Promise.all([admin.enable(ec), admin.enable(rsa)]);
    await healed();
  });

  const as = ({ clientId, clientSecret }: Application) => ({
    client_id: clientId,
    client_secret: clientSecret,
  });
  const awsToken = () => ada.post(AWS, {}, { address: newAddress() });
  const jwtToken = () =>
    postForm(app, '/oauth/token', {
      ...as(service),
      grant_type: 'client_credentials',
      resource: RESOURCE,
    });
  const newRedemption = async () => ({ ...as(web), ...(await newCodeFields(ada, web.clientId)) });
  const redeem = (fields: Record<string, string>) => postForm(app, '/oauth/token', fields);
  const published = async () => {
    const { json } = await app.client().get('/oauth/jwks');
    return createLocalJWKSet(json);
  };
  /**
   * Waits until KMS signs with both keys again: after failures the service stops its requests for
   * some time.
   */
  async function healed(): Promise<void> {
    for (const act of [awsToken, jwtToken]) {
      while ((await act()).status !== 200) {
        await new Promise((resolve) => {
          setTimeout(resolve, 20);
        });
      }
    }
  }

  it('verify with the published keys: an ID token, a JWT access token and a token for AWS', async () => {
    const keys = await published();
    const { json } = await redeem(await newRedemption());
    const { payload } = await jwtVerify(json.id_token as string, keys, {
      algorithms: ['ES256'],
      issuer: app.baseUrl,
      audience: web.clientId,
    });
    expect(payload['email']).toBe(ADA);
    const jwt = (await jwtToken()).json.access_token as string;
    await jwtVerify(jwt, keys, { algorithms: ['ES256'], typ: 'at+jwt', audience: RESOURCE });
    const aws = (await awsToken()).json.id_token as string;
    await jwtVerify(aws, keys, { algorithms: ['RS256'], audience: 'sts.amazonaws.com' });
    const introspected = await postForm(app, '/oauth/introspect', { ...as(service), token: jwt });
    expect(introspected.json.active).toBe(true);
  });

  it('end with a logout that presents such an ID token', async () => {
    const { json } = await redeem(await newRedemption());
    const hint = encodeURIComponent(json.id_token as string);
    expect((await app.client().get(`/oauth/logout?id_token_hint=${hint}`)).status).toBe(200);
  });

  it('are sent to KMS as SHA-256 digests', async () => {
    const from = proxy.seen.length;
    await awsToken();
    await redeem(await newRedemption());
    const signed = proxy.seen.slice(from).map(({ target, body }) => {
      const call = JSON.parse(body) as Record<string, string>;
      const message = Buffer.from(call['Message'] ?? '', 'base64');
      return [target, call['MessageType'], call['SigningAlgorithm'], message.length];
    });
    expect(signed).toEqual([
      ['TrentService.Sign', 'DIGEST', 'RSASSA_PKCS1_V1_5_SHA_256', 32],
      ['TrentService.Sign', 'DIGEST', 'ECDSA_SHA_256', 32],
    ]);
  });

  const FAULTS: readonly (readonly [string, Fault])[] = [
    ['is throttled', kmsError('ThrottlingException')],
    ['fails', kmsError('KMSInternalException', 500)],
    ['cuts the connection', 'cut'],
    ['does not answer', 'hang'],
    ['says that the key is disabled', kmsError('DisabledException')],
    ['denies access', kmsError('AccessDeniedException')],
  ];

  it.each(FAULTS)(
    'are 503 with retry-after while KMS %s, in each format, and heal',
    async (_, fault) => {
      const redemption = await newRedemption();
      proxy.fault = fault;
      const [problem, oauth, unsigned] = await Promise.all([
        awsToken(),
        redeem(redemption),
        jwtToken(),
      ]);
      for (const { status, headers, text } of [problem, oauth, unsigned]) {
        expect([status, headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)]);
        expect(text).not.toMatch(/planted-value|arn:|KMS|Exception/);
      }
      expect(problem.json).toMatchObject({ code: 'kms_unavailable', status: 503 });
      expect(problem.headers.get('content-type')).toContain('application/problem+json');
      expect(oauth.json.error).toBe('temporarily_unavailable');
      expect(oauth.json).not.toHaveProperty('access_token');
      proxy.fault = 'none';
      await healed();
      expect((await redeem(redemption)).status).toBe(200);
    },
  );

  it('are 503 while KMS answers with signatures of other keys, or that no key made', async () => {
    const ofOthers = [
      sign(
        'sha256',
        Buffer.from('x'),
        generateKeyPairSync('rsa', { modulusLength: 3072 }).privateKey,
      ),
      sign(
        'sha256',
        Buffer.from('x'),
        generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
      ),
      Buffer.from('no signature'),
    ];
    for (const signature of ofOthers) {
      const redemption = await newRedemption();
      proxy.fault = kmsAnswer({ KeyId: ec, Signature: signature.toString('base64') });
      const answers = await Promise.all([awsToken(), redeem(redemption), jwtToken()]);
      expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
      proxy.fault = 'none';
      await healed();
      expect((await redeem(redemption)).status).toBe(200);
    }
  });

  it('are an error in JSON, not in the form of a JWT, where userinfo is not signed', async () => {
    const signed = await addApplication(
      app,
      {
        token_endpoint_auth_method: 'client_secret_post',
        redirect_uris: [CALLBACK],
        grant_types: ['authorization_code'],
        userinfo_signed_response_alg: 'ES256',
      },
      { owner: ADA },
    );
    const { json } = await redeem({
      ...as(signed),
      ...(await newCodeFields(ada, signed.clientId)),
    });
    const headers = { authorization: `Bearer ${String(json.access_token)}` };
    const userinfo = () => app.client().get('/oauth/userinfo', { headers });
    proxy.fault = kmsError('AccessDeniedException');
    const answer = await userinfo();
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    expect(answer.headers.get('content-type')).toContain('application/json');
    expect(answer.json.error).toBe('temporarily_unavailable');
    proxy.fault = 'none';
    await healed();
    expect((await userinfo()).headers.get('content-type')).toBe('application/jwt');
  });

  it('are 503, not 500, for an error that KMS gives to other calls alone', async () => {
    const redemption = await newRedemption();
    proxy.fault = kmsError('IncorrectKeyException');
    const answers = await Promise.all([awsToken(), redeem(redemption), jwtToken()]);
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
    proxy.fault = 'none';
    await healed();
    expect((await redeem(redemption)).status).toBe(200);
  });

  it('repeat a call that is throttled, and no call that is refused', async () => {
    const callsAt = async (fault: Fault) => {
      await healed();
      proxy.fault = fault;
      const from = proxy.requests;
      expect((await awsToken()).status).toBe(503);
      proxy.fault = 'none';
      return proxy.requests - from;
    };
    expect(await callsAt(kmsError('ThrottlingException'))).toBe(2);
    expect(await callsAt(kmsError('AccessDeniedException'))).toBe(1);
    expect(await callsAt(kmsError('DisabledException'))).toBe(1);
  });

  it('are asked of KMS no more after five failures in a row, until a probe succeeds', async () => {
    proxy.fault = kmsError('AccessDeniedException');
    for (let n = 0; n < 5; n += 1) expect((await awsToken()).status).toBe(503);
    const from = proxy.requests;
    const burst = await Promise.all(Array.from({ length: 20 }, awsToken));
    expect(burst.every(({ status }) => status === 503)).toBe(true);
    expect(proxy.requests - from).toBeLessThan(20);
    proxy.fault = 'none';
    await healed();
    expect((await awsToken()).status).toBe(200);
  });

  it('are 503 while an administrator has disabled the key, and heal when it is enabled', async () => {
    await Promise.all([admin.disable(ec), admin.disable(rsa)]);
    expect((await awsToken()).status).toBe(503);
    expect((await jwtToken()).status).toBe(503);
    await Promise.all([admin.enable(ec), admin.enable(rsa)]);
    await healed();
    expect((await awsToken()).status).toBe(200);
  });

  it('leave nothing half issued: the code can be redeemed once later, and no token is active', async () => {
    const redemption = await newRedemption();
    const before = await count(app.dataSource, ACTIVE);
    const audited = `audit_events WHERE type = 'oauth_token_revoked' AND details ->> 'reason' = 'kms_unavailable'`;
    const revoked = await count(app.dataSource, audited);
    proxy.fault = kmsError('AccessDeniedException');
    expect((await redeem(redemption)).status).toBe(503);
    expect(await count(app.dataSource, ACTIVE)).toBe(before);
    expect(await count(app.dataSource, audited)).toBe(revoked + 1);
    proxy.fault = 'none';
    await healed();
    const answers = await Promise.all(Array.from({ length: 20 }, () => redeem(redemption)));
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
    expect(answers.filter(({ json }) => json.error === 'invalid_grant').length).toBeGreaterThan(18);
  });

  it('show a page in place of a signed authorization response', async () => {
    proxy.fault = kmsError('AccessDeniedException');
    const request = {
      client_id: web.clientId,
      response_type: 'code',
      response_mode: 'jwt',
      redirect_uri: CALLBACK,
      scope: 'openid',
      nonce: 'n',
    };
    await expect(authorize(ada, request)).rejects.toThrow(/answered 503: <!doctype html>/i);
  });

  it('hold no connection to the database while KMS hangs: other routes answer', async () => {
    const redemptions = await Promise.all(Array.from({ length: 10 }, newRedemption));
    proxy.fault = 'hang';
    const from = proxy.requests;
    const waiting = [...redemptions.map(redeem), ...Array.from({ length: 10 }, awsToken)];
    let answered = 0;
    for (const answer of waiting) void answer.then(() => (answered += 1));
    while (proxy.requests - from < 20) {
      await new Promise((resolve) => {
        setTimeout(resolve, 5);
      });
    }
    const others = await Promise.all(
      ['/health/ready', '/v1/keys', '/v1/sessions', '/.well-known/openid-configuration'].map(
        (path) => ada.get(path, { address: newAddress() }),
      ),
    );
    expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const idle = `pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`;
    // Work of the service itself may be between two of its statements in this moment.
    await expect.poll(() => count(app.dataSource, idle)).toBe(0);
    expect(answered).toBe(0);
    const answers = await Promise.all(waiting);
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 503));
  });

  it('name the key in KMS, whose id is its thumbprint', async () => {
    const { json } = await app.client().get('/oauth/jwks');
    const keys = json['keys'] as Record<string, string>[];
    const { kid } = decodeProtectedHeader((await jwtToken()).json.access_token as string);
    expect(keys[0]?.['kid']).toBe(kid);
    expect(keys.map(({ alg }) => alg)).toEqual(['ES256', 'ES256', 'RS256', 'RS256']);
    expect(keys.filter((key) => 'd' in key)).toEqual([]);
  });
});
