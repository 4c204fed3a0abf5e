import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issueAuthority } from '@svc/stand-ins/attestation-authority';
import { basicConstraints, issueCertificate, type Name } from '@svc/stand-ins/certificates';
import { addApplication, claimsOf } from '../../support/applications.js';
import { newAddress } from '../../support/client.js';
import { sendSecurely } from '../../support/https-client.js';
import {
  CALLBACK,
  assertionFields,
  fapiMetadata,
  newClientKeys,
  newPkce,
  parameterOf,
} from '../../support/oauth-flow.js';
import { startSecureApp, type SecureApp } from '../../support/secure-app.js';

const ADA = 'ada@mtls.example';
const authority = issueAuthority('Authority of the clients', new Date());
const stranger = issueAuthority('Somebody else', new Date());

/** A client's certificate and private key, both in PEM. */
interface Identity {
  readonly cert: string;
  readonly key: string;
}

function identity(subject: Name, issuer?: typeof authority): Identity {
  const issued = issueCertificate(
    {
      subject,
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + 3_600_000),
      extensions: [basicConstraints(false)],
      keys: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    },
    issuer,
  );
  return {
    cert: issued.pem,
    key: issued.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

const SUBJECT: Name = [
  ['C', 'SE'],
  ['O', 'Example'],
  ['CN', 'client one'],
];
const thumbprint = ({ cert }: Identity) =>
  Buffer.from(new X509Certificate(cert).fingerprint256.replaceAll(':', ''), 'hex').toString(
    'base64url',
  );

describe('mutual TLS (RFC 8705)', () => {
  let secure: SecureApp;
  let cookie: string;
  const known = identity(SUBJECT, authority);
  const unknown = identity(SUBJECT, stranger);
  const selfSigned = identity([['CN', 'on its own']]);
  beforeAll(async () => {
    secure = await startSecureApp({ SVC_MTLS_CLIENT_CA_CERTS: authority.pem });
    cookie = await secure.loggedIn(ADA);
  });
  afterAll(() => secure.app.close());

  const service = (metadata: object) =>
    addApplication(
      secure.app,
      {
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
        tls_client_certificate_bound_access_tokens: true,
        ...metadata,
      },
      { owner: ADA },
    );
  const byDn = (dn: string) =>
    service({ token_endpoint_auth_method: 'tls_client_auth', tls_client_auth_subject_dn: dn });
  const ask = (clientId: string, with_?: Identity, base = secure.mutualTlsUrl) =>
    secure.post(
      base,
      '/oauth/token',
      { grant_type: 'client_credentials', client_id: clientId },
      with_,
    );

  it('the discovery document names the endpoints that accept certificates', async () => {
    const { json } = await secure.get(secure.baseUrl, '/.well-known/openid-configuration');
    expect(json.token_endpoint).toBe(`${secure.baseUrl}/oauth/token`);
    expect(json.mtls_endpoint_aliases).toMatchObject({
      token_endpoint: `${secure.mutualTlsUrl}/oauth/token`,
      introspection_endpoint: `${secure.mutualTlsUrl}/oauth/introspect`,
      pushed_authorization_request_endpoint: `${secure.mutualTlsUrl}/oauth/par`,
      userinfo_endpoint: `${secure.mutualTlsUrl}/oauth/userinfo`,
    });
    expect(json.mtls_endpoint_aliases).not.toHaveProperty('authorization_endpoint');
    expect(json.token_endpoint_auth_methods_supported).toContain('tls_client_auth');
    expect(json.tls_client_certificate_bound_access_tokens).toBe(true);
    const atAlias = await secure.get(secure.mutualTlsUrl, '/.well-known/openid-configuration');
    expect(atAlias.json).toEqual(json); // the metadata is the same at the alias host
    const device = await secure.post(secure.mutualTlsUrl, '/oauth/device', {
      client_id: 'svc-cli',
      scope: 'openid',
    });
    expect(device.json.verification_uri).toBe(`${secure.baseUrl}/device`);
    expect(device.json.verification_uri_complete).toMatch(`${secure.baseUrl}/device?user_code=`);
  });

  it('tls_client_auth: the registered subject gets a token bound to its certificate', async () => {
    const { clientId } = await byDn('CN=client one,O=Example,C=SE');
    const answer = await ask(clientId, known);
    expect([answer.status, answer.json.token_type]).toEqual([200, 'Bearer']);
    const state = await secure.post(
      secure.mutualTlsUrl,
      '/oauth/introspect',
      { token: answer.json.access_token as string, client_id: clientId },
      known,
    );
    expect(state.json).toMatchObject({ active: true, cnf: { 'x5t#S256': thumbprint(known) } });
  });

  it('tls_client_auth: another subject is refused with the reason', async () => {
    const { clientId } = await byDn('CN=client two,O=Example,C=SE');
    const answer = await ask(clientId, known);
    expect([answer.status, answer.json]).toEqual([
      401,
      { error: 'invalid_client', error_description: 'subject mismatch' },
    ]);
    expect(secure.app.log.join('')).not.toContain('RDN order reversed');
  });

  it('tls_client_auth: a subject in DER order is refused with the reason, also in the log', async () => {
    const { clientId } = await byDn('C=SE,O=Example,CN=client one');
    const answer = await ask(clientId, known);
    expect([answer.status, answer.json.error_description]).toEqual([401, 'subject mismatch']);
    const line = secure.app.log.find((one) => one.includes('RDN order reversed'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 'warn', context: 'oidc' });
  });

  it.each<readonly [string, Identity | undefined]>([
    ['no certificate', undefined],
    ['the same subject from another authority', unknown],
    ['a self-signed one of the same subject', identity(SUBJECT)],
  ])('tls_client_auth: %s is refused', async (_, presented) => {
    const { clientId } = await byDn('CN=client one,O=Example,C=SE');
    const answer = await ask(clientId, presented);
    expect([answer.status, answer.json.error]).toEqual([401, 'invalid_client']);
  });

  it('a certificate is ignored in a header, and on the listener that requests none', async () => {
    const { clientId } = await byDn('CN=client one,O=Example,C=SE');
    const form = { grant_type: 'client_credentials', client_id: clientId };
    const pem = encodeURIComponent(known.cert);
    const headers = {
      'x-client-cert': pem,
      'x-ssl-client-cert': pem,
      'client-cert': `:${new X509Certificate(known.cert).raw.toString('base64')}:`,
      'x-forwarded-client-cert': `Cert="${pem}"`,
    };
    for (const base of [secure.baseUrl, secure.mutualTlsUrl]) {
      const answer = await secure.post(base, '/oauth/token', form, { headers });
      expect([base, answer.status]).toEqual([base, 401]);
    }
    expect((await ask(clientId, known, secure.baseUrl)).status).toBe(401);
  });

  it('self_signed_tls_client_auth: the registered certificate, and no other', async () => {
    const x5c = [new X509Certificate(selfSigned.cert).raw.toString('base64')];
    const jwk = new X509Certificate(selfSigned.cert).publicKey.export({ format: 'jwk' });
    const { clientId } = await service({
      token_endpoint_auth_method: 'self_signed_tls_client_auth',
      jwks: { keys: [{ ...jwk, x5c }] },
    });
    const answer = await ask(clientId, selfSigned);
    expect(answer.status).toBe(200);
    for (const other of [known, identity([['CN', 'on its own']]), undefined]) {
      expect((await ask(clientId, other)).status).toBe(401);
    }
  });

  it('a bound token is accepted only with its certificate, at userinfo too', async () => {
    const { clientId } = await addApplication(
      secure.app,
      {
        redirect_uris: [CALLBACK],
        response_types: ['code'],
        grant_types: ['authorization_code'],
        token_endpoint_auth_method: 'tls_client_auth',
        tls_client_auth_subject_dn: 'CN=client one,O=Example,C=SE',
        tls_client_certificate_bound_access_tokens: true,
        id_token_signed_response_alg: 'ES256',
      },
      { owner: ADA },
    );
    const { verifier, challenge } = newPkce();
    const query = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    const sent = await secure.get(secure.baseUrl, `/oauth/authorize?${query.toString()}`, {
      cookie,
    });
    const code = parameterOf(new URL(String(sent.headers['location'])), 'code');
    const redeemed = await secure.post(
      secure.mutualTlsUrl,
      '/oauth/token',
      {
        grant_type: 'authorization_code',
        client_id: clientId,
        code,
        code_verifier: verifier,
        redirect_uri: CALLBACK,
      },
      known,
    );
    expect(redeemed.status).toBe(200);
    expect(claimsOf(redeemed.json.id_token as string)).toMatchObject({
      iss: secure.baseUrl,
      hardware_verified: true,
    });
    const read = (with_?: Identity) =>
      sendSecurely(`${secure.mutualTlsUrl}/oauth/userinfo`, {
        ca: secure.authority.ca,
        method: 'GET',
        ...with_,
        headers: {
          authorization: `Bearer ${redeemed.json.access_token}`,
          'x-forwarded-for': newAddress(),
        },
      });
    expect((await read(known)).json.email).toBe(ADA);
    for (const other of [undefined, unknown, selfSigned]) {
      const refused = await read(other);
      expect([refused.status, refused.json.error]).toEqual([401, 'invalid_token']);
    }
  });

  it('a client assertion in a pushed request names either address of the endpoint; a FAPI client names the issuer alone', async () => {
    const keys = await newClientKeys();
    const metadata = {
      redirect_uris: [CALLBACK],
      grant_types: ['authorization_code'],
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [keys.jwk] },
    };
    const plain = await addApplication(secure.app, metadata, { owner: ADA });
    const fapi = await addApplication(secure.app, fapiMetadata(keys), { owner: ADA });
    const push = async (base: string, clientId: string, aud: string) =>
      (
        await secure.post(base, '/oauth/par', {
          response_type: 'code',
          redirect_uri: CALLBACK,
          scope: 'openid',
          nonce: 'n',
          code_challenge: newPkce().challenge,
          code_challenge_method: 'S256',
          ...(await assertionFields(secure, clientId, keys, { aud })),
        })
      ).status;
    const { baseUrl, mutualTlsUrl } = secure;
    for (const base of [baseUrl, mutualTlsUrl]) {
      expect([base, await push(base, fapi.clientId, baseUrl)]).toEqual([base, 201]);
      expect([base, await push(base, plain.clientId, baseUrl)]).toEqual([base, 201]);
      for (const path of ['/oauth/par', '/oauth/token']) {
        const aud = baseUrl + path;
        expect([base, aud, await push(base, plain.clientId, aud)]).toEqual([base, aud, 201]);
        expect([base, aud, await push(base, fapi.clientId, aud)]).toEqual([base, aud, 401]);
      }
    }
    const alias = `${mutualTlsUrl}/oauth/par`;
    expect(await push(mutualTlsUrl, plain.clientId, alias)).toBe(201);
    expect(await push(mutualTlsUrl, fapi.clientId, alias)).toBe(401);
    expect(await push(baseUrl, plain.clientId, alias)).toBe(401);
  });

  it('a registration keeps its own addresses, also those on the host of the service', async () => {
    const own = (path: string) => `${secure.mutualTlsUrl}/${path}`;
    const addresses = {
      client_uri: own('home'),
      logo_uri: own('logo'),
      policy_uri: own('policy'),
      tos_uri: own('tos'),
      initiate_login_uri: own('login'),
    };
    const headers = { 'x-forwarded-for': newAddress() };
    const send = (url: string, method: string, body?: object, token?: string) =>
      sendSecurely(url, {
        ca: secure.authority.ca,
        method,
        ...(body ? { text: JSON.stringify(body) } : {}),
        headers: { ...headers, ...(token && { authorization: `Bearer ${token}` }) },
      });
    for (const base of [secure.mutualTlsUrl, secure.baseUrl]) {
      const metadata = { redirect_uris: [CALLBACK], ...addresses };
      const { status, json } = await send(`${base}/oauth/register`, 'POST', metadata);
      expect([status, json]).toMatchObject([201, addresses]);
      const registration = `${secure.baseUrl}/oauth/register/${json.client_id}`;
      expect(json.registration_client_uri).toBe(registration);
      const at = `${base}/oauth/register/${json.client_id}`;
      const read = await send(at, 'GET', undefined, json.registration_access_token as string);
      expect(read.json).toMatchObject({ ...addresses, registration_client_uri: registration });
      const { registration_access_token: token, registration_client_uri: _, ...shown } = read.json;
      for (const name of ['client_secret_expires_at', 'client_id_issued_at']) delete shown[name];
      const changed = await send(at, 'PUT', { ...shown, ...addresses }, token as string);
      expect([changed.status, changed.json]).toMatchObject([200, addresses]);
    }
  });

  it('openid-client authenticates with a certificate at the alias, and gets a bound token', async () => {
    const { clientId } = await byDn('CN=client one,O=Example,C=SE');
    const tls: client.CustomFetch = async (url, { method, headers, body }) => {
      const answer = await sendSecurely(url, {
        ca: secure.authority.ca,
        ...known,
        method,
        headers: { ...headers, 'x-forwarded-for': newAddress() },
        ...(body ? { form: Object.fromEntries(body as URLSearchParams) } : {}),
      });
      return new Response(answer.text, {
        status: answer.status,
        headers: { 'content-type': String(answer.headers['content-type']) },
      });
    };
    const config = await client.discovery(
      new URL(secure.baseUrl),
      clientId,
      { use_mtls_endpoint_aliases: true },
      client.TlsClientAuth(),
      { [client.customFetch]: tls },
    );
    const tokens = await client.clientCredentialsGrant(config, {
      resource: 'https://orders.example',
      scope: '',
    });
    expect(claimsOf(tokens.access_token)).toMatchObject({
      iss: secure.baseUrl,
      aud: 'https://orders.example',
      cnf: { 'x5t#S256': thumbprint(known) },
    });
    expect((await client.tokenIntrospection(config, tokens.access_token)).active).toBe(true);
  });
});

describe('mutual TLS without client authorities', () => {
  it('tls_client_auth is refused for a certificate of any issuer', async () => {
    const secure = await startSecureApp();
    try {
      await secure.loggedIn(ADA);
      const { clientId } = await addApplication(
        secure.app,
        {
          redirect_uris: [],
          response_types: [],
          grant_types: ['client_credentials'],
          token_endpoint_auth_method: 'tls_client_auth',
          tls_client_auth_subject_dn: 'CN=client one,O=Example,C=SE',
        },
        { owner: ADA },
      );
      const answer = await secure.post(
        secure.mutualTlsUrl,
        '/oauth/token',
        { grant_type: 'client_credentials', client_id: clientId },
        identity(SUBJECT, authority),
      );
      expect([answer.status, answer.json.error]).toEqual([401, 'invalid_client']);
    } finally {
      await secure.app.close();
    }
  });
});
