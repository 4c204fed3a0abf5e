import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { OidcUpstream } from '#domain/providers/oidc-upstream.js';
import { systemClock } from '#platform/clock/clock.js';
import { UpstreamHttp, type UpstreamRequest } from '#platform/outbound/upstream-http.js';
import { changed, type FakeIdp, type Json } from '../support/fake-idp.js';
import {
  BROWSER,
  complete,
  fakeIdp,
  REDIRECT_URI,
  refusal,
  settingsOf,
  upstreamSuite,
} from '../support/upstream.js';

const { connect, problemsOf } = upstreamSuite();

const VECTORS = join(import.meta.dirname, '../vectors/discovery');
const TENANT = '72f988bf-86f1-41af-91ab-2d7cd011db47';
const PING_ENVIRONMENT = '3f1e5a52-6c0b-4d0e-9b59-2a1a1f5c7d11';

/** A vendor's identity provider, as its documentation describes it. */
interface Vendor {
  /** The name of the file with its discovery document, in `VECTORS`. */
  readonly file: string;
  /** The part of the issuer URL after the host, as an operator writes it. */
  readonly path: string;
  /** Returns the claims of its ID token that differ from those of every token of the stand-in. */
  readonly claims: (origin: string) => Json;
  /** The response of its userinfo endpoint, if its ID token has no e-mail address. */
  readonly userinfo?: Json;
  /** True if it sends `iss` in the redirect (RFC 9207). */
  readonly sendsIssuer?: boolean;
}

const vendors: Record<string, Vendor> = {
  'Microsoft Entra ID': {
    file: 'entra.json',
    path: '/organizations/v2.0',
    claims: (origin) => ({
      iss: `${origin}/${TENANT}/v2.0`,
      tid: TENANT,
      oid: '00000000-0000-0000-66f3-3332eca7ea81',
      ver: '2.0',
      email_verified: undefined,
      xms_edov: '1',
      preferred_username: 'ada@engine.test',
    }),
  },
  'Okta, org authorization server': {
    file: 'okta.json',
    path: '',
    claims: () => ({ ver: 1, idp: '00o1', email: undefined, email_verified: undefined }),
    userinfo: { sub: 'subject-1', email: 'ada@engine.test', email_verified: true, locale: 'en_US' },
  },
  'Okta, custom authorization server': {
    file: 'okta-custom.json',
    path: '/oauth2/default',
    claims: () => ({ ver: 1, email_verified: true }),
  },
  Google: {
    file: 'google.json',
    path: '',
    claims: () => ({ azp: 'svc', hd: 'engine.test', email_verified: true }),
    sendsIssuer: true,
  },
  Keycloak: {
    file: 'keycloak.json',
    path: '/realms/acme',
    claims: () => ({ typ: 'ID', azp: 'svc', acr: '1', email_verified: true, sid: 'a session' }),
    sendsIssuer: true,
  },
  OneLogin: {
    file: 'onelogin.json',
    path: '/oidc/2',
    claims: () => ({ sid: 'a session', email_verified: 'true' }),
  },
  JumpCloud: {
    file: 'jumpcloud.json',
    path: '/',
    claims: () => ({ jc_org: '7778e57842cd2850567c09b9', rat: 1, email_verified: 'true' }),
  },
  PingOne: {
    file: 'ping.json',
    path: `/${PING_ENVIRONMENT}/as`,
    claims: () => ({ env: PING_ENVIRONMENT, sid: 'a session', email_verified: true }),
  },
};

const documentOf = ({ file }: Vendor) =>
  JSON.parse(readFileSync(join(VECTORS, file), 'utf8')) as Json;

/** Starts a stand-in with the discovery document, the paths and the claims of a vendor. */
async function startVendor(vendor: Vendor): Promise<FakeIdp> {
  const idp = await fakeIdp({ path: vendor.path, vendor: documentOf(vendor) });
  idp.misbehaviour = {
    claims: changed({ email_verified: undefined, ...vendor.claims(idp.origin) }),
    ...(vendor.userinfo ? { userinfo: vendor.userinfo } : {}),
    ...(vendor.sendsIssuer ? { callback: (query) => query.set('iss', idp.issuer) } : {}),
  };
  return idp;
}

/** Signs a user in at a vendor. Returns the identity, and the URL to which the browser was sent. */
async function signInAt(idp: FakeIdp) {
  const providers = await connect([settingsOf(idp)]);
  const url = await providers.begin('corp', { redirectTo: '/account/keys', browser: BROWSER });
  const { identity } = await complete(providers, { url: idp.authorize(url), browser: BROWSER });
  return { identity, url };
}

describe.each(Object.entries(vendors))('the discovery document of %s', (_name, vendor) => {
  it('starts the service, and signs a user in at the endpoints that it names', async () => {
    const idp = await startVendor(vendor);
    const { identity, url } = await signInAt(idp);
    const named = new URL(String(documentOf(vendor)['authorization_endpoint']));
    expect(url.origin + url.pathname).toBe(idp.origin + named.pathname);
    expect(identity).toMatchObject({ email: 'ada@engine.test', subject: 'subject-1' });
    expect(identity.issuer).toBe(vendor.claims(idp.origin)['iss'] ?? idp.issuer);
  });

  it('gets a code flow with PKCE, and the client secret in the way that it offers', async () => {
    const idp = await startVendor(vendor);
    const { url } = await signInAt(idp);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: 'code',
      redirect_uri: REDIRECT_URI,
      scope: 'openid email profile',
      code_challenge_method: 'S256',
      nonce: expect.any(String),
    });
    expect(url.searchParams.has('response_mode')).toBe(false);
    const [request] = idp.tokenRequests;
    expect(request?.authorization).toMatch(/^Basic /);
    expect(request?.form).not.toHaveProperty('client_secret');
    expect(request?.form['code_verifier']).toBeDefined();
  });

  it('stops the start where the issuer has one slash more or less at its end', async () => {
    const idp = await startVendor(vendor);
    const issuer = idp.issuer.endsWith('/') ? idp.issuer.slice(0, -1) : `${idp.issuer}/`;
    const problems = await problemsOf({ ...settingsOf(idp), issuer });
    expect(problems).toEqual([
      expect.stringMatching(/^SVC_IDP_CORP_ISSUER: issuer mismatch: .*trailing slash included$/),
    ]);
  });

  it('signs nobody in whose e-mail address it does not call verified', async () => {
    const idp = await startVendor(vendor);
    const { claims = (all: Json) => all, userinfo } = idp.misbehaviour;
    const unverified = { email_verified: 'false', xms_edov: undefined };
    idp.misbehaviour.claims = (all) => ({ ...claims(all), ...unverified });
    if (userinfo) idp.misbehaviour.userinfo = { ...userinfo, email_verified: false };
    expect((await refusal(signInAt(idp))).code).toBe('sign_in_refused');
  });
});

/** Sends every HTTPS request to the provider on this machine, and keeps the path of its URL. */
class LocalHttp extends UpstreamHttp {
  constructor(idp: FakeIdp) {
    super([]);
    const { fetch, fetchForLibrary } = this;
    const local = (url: string) => url.replace(/^https:\/\/[^/]+/, idp.origin);
    type LibraryRequest = Parameters<typeof fetchForLibrary>[1];
    Object.defineProperties(this, {
      fetch: { value: (url: string, asked: UpstreamRequest) => fetch(local(url), asked) },
      fetchForLibrary: {
        value: (url: string, asked: LibraryRequest) => fetchForLibrary(local(url), asked),
      },
    });
  }
}

describe('a provider of many organizations under its own name', () => {
  const google = vendors['Google'];
  const signInAtGoogle = async (claims: Json) => {
    if (!google) throw new Error('no document of Google');
    const issuer = 'https://accounts.google.com';
    const document = documentOf(google);
    const idp = await fakeIdp({ vendor: document });
    idp.misbehaviour = {
      claims: changed({ iss: issuer, ...claims }),
      callback: (query) => query.set('iss', issuer),
    };
    const http = new LocalHttp(idp);
    const original = http.fetch;
    Object.defineProperty(http, 'fetch', {
      value: async (url: string, request: UpstreamRequest) =>
        url.includes('/.well-known/') ? Response.json(document) : original(url, request),
    });
    const settings = { ...settingsOf(idp), issuer };
    const provider = await OidcUpstream.connect(settings, REDIRECT_URI, http, systemClock);
    const remembered = provider.remember();
    const url = await provider.depart({ state: 'the state', remembered });
    const { searchParams: parameters } = idp.authorize(url);
    return provider.arrive({ parameters, state: 'the state', remembered });
  };

  it('Google gives the organization by `hd`, and none without it', async () => {
    expect(await signInAtGoogle({ hd: 'Engine.com' })).toMatchObject({
      issuer: 'https://accounts.google.com',
      tenant: 'engine.com',
      organizationDomain: 'engine.com',
    });
    expect(await signInAtGoogle({})).toMatchObject({ tenant: '', organizationDomain: null });
  });

  it('Entra gives the tenant of the token, and "common" stops the start', async () => {
    const entra = vendors['Microsoft Entra ID'];
    if (!entra) throw new Error('no document of Entra');
    const idp = await startVendor(entra);
    expect((await signInAt(idp)).identity.tenant).toBe(TENANT);
    const issuer = `${idp.origin}/common/v2.0`;
    expect(await problemsOf({ ...settingsOf(idp), issuer })).toEqual([
      expect.stringContaining('"common" v2.0 issuer is not supported'),
    ]);
  });
});
