import { describe, expect, it } from 'vitest';
import { discoverProvider } from '#domain/providers/openid/provider-discovery.js';
import { UpstreamHttp } from '#platform/outbound/upstream-http.js';
import { changed, type Misbehaviour } from '../support/fake-idp.js';
import { makeTlsAuthority } from '../support/tls-authority.js';
import { upstreamSuite, BROWSER, complete, fakeIdp, settingsOf } from '../support/upstream.js';

const { connect, problemsOf } = upstreamSuite();

const TENANT = '72f988bf-86f1-41af-91ab-2d7cd011db47';

describe('discovery at startup', () => {
  it('reports every unusable provider on a line with its variable and no secret', async () => {
    const [wrong, gone] = await Promise.all([fakeIdp(), fakeIdp()]);
    wrong.misbehaviour = { document: changed({ issuer: 'https://evil.test' }) };
    await gone.close();
    const problems = await problemsOf(settingsOf(wrong, 'corp-one'), settingsOf(gone, 'two'), {
      ...settingsOf(wrong, 'three'),
      issuer: 'http://idp.test',
    });
    expect(problems).toEqual([
      expect.stringMatching(/^SVC_IDP_CORP_ONE_ISSUER: issuer mismatch.*"https:\/\/evil\.test"/),
      'SVC_IDP_TWO_ISSUER: discovery failed: ECONNREFUSED',
      'SVC_IDP_THREE_ISSUER: must be https (http only for localhost)',
    ]);
    expect(problems.join('\n')).not.toContain(wrong.clientSecret);
  });

  it('compares the issuer exactly: an added or missing trailing slash is a mismatch', async () => {
    const idp = await fakeIdp();
    const slashed = { ...settingsOf(idp), issuer: `${idp.issuer}/` };
    expect(await problemsOf(slashed)).toEqual([expect.stringContaining('issuer mismatch')]);
    idp.misbehaviour = { document: changed({ issuer: `${idp.issuer}/` }) };
    expect(await problemsOf(settingsOf(idp))).toEqual([expect.stringContaining('issuer mismatch')]);
    expect((await connect([slashed])).list()).toHaveLength(1);
  });

  it.each(['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'])(
    'refuses a plain http %s',
    async (name) => {
      const idp = await fakeIdp();
      idp.misbehaviour = { document: changed({ [name]: 'http://idp.test/x' }) };
      const [problem] = await problemsOf(settingsOf(idp));
      expect(problem).toContain(`${name} must be https`);
    },
  );

  it('does not let an https provider lead to plain http on the same machine', async () => {
    const authority = makeTlsAuthority();
    const idp = await fakeIdp({ tls: authority });
    idp.misbehaviour = { document: changed({ token_endpoint: 'http://127.0.0.1/token' }) };
    const error: unknown = await connect([settingsOf(idp)], [authority.ca]).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({
      message: expect.stringContaining('token_endpoint must be https'),
    });
  });

  const unusable: [string, Misbehaviour, string][] = [
    ['without endpoints', { document: ({ issuer }) => ({ issuer }) }, 'authorization_endpoint'],
    ['that is no object', { document: () => [] }, 'unusable'],
    ['that is not JSON', { discovery: { status: 200, body: '<html>' } }, 'not JSON'],
    ['that is not there', { discovery: { status: 404, body: {} } }, 'status 404'],
    ['that redirects to another address', { discovery: { status: 302, body: {} } }, 'status 302'],
    ['of a megabyte', { discovery: { status: 200, body: ' '.repeat(2 ** 20 + 1) } }, 'too large'],
    [
      'that knows only HMAC and none',
      { document: changed({ id_token_signing_alg_values_supported: ['HS256', 'none'] }) },
      'no asymmetric algorithm',
    ],
    [
      'that takes no client secret',
      { document: changed({ token_endpoint_auth_methods_supported: ['private_key_jwt'] }) },
      'takes a client secret neither',
    ],
  ];
  it.each(unusable)('refuses a document %s', async (_what, misbehaviour, problem) => {
    const idp = await fakeIdp({ misbehaviour });
    expect(await problemsOf(settingsOf(idp))).toEqual([
      expect.stringMatching(new RegExp(`^SVC_IDP_CORP_ISSUER: .*${problem}`)),
    ]);
  });

  it('has a time limit', async () => {
    const idp = await fakeIdp({ misbehaviour: { delay: 5 } });
    const http = new UpstreamHttp([], 0.1);
    await expect(discoverProvider(settingsOf(idp), http)).rejects.toThrow(
      'SVC_IDP_CORP_ISSUER: discovery failed: it did not answer in time',
    );
    await http.close();
  });

  it('refuses a "common" v2.0 issuer, configured or discovered', async () => {
    const configured = await fakeIdp({ path: '/common/v2.0' });
    expect(await problemsOf(settingsOf(configured))).toEqual([expect.stringContaining('"common"')]);
    const discovered = await fakeIdp();
    discovered.misbehaviour = {
      document: changed({ issuer: `${discovered.origin}/common/v2.0` }),
    };
    expect(await problemsOf(settingsOf(discovered))).toEqual([expect.stringContaining('"common"')]);
  });

  it('refuses the tenant template under any path but "organizations"', async () => {
    const idp = await fakeIdp({ path: `/${TENANT}/v2.0` });
    idp.misbehaviour = {
      document: changed({ issuer: `${idp.origin}/{tenantid}/v2.0` }),
    };
    expect(await problemsOf(settingsOf(idp))).toEqual([expect.stringContaining('issuer mismatch')]);
  });

  it('trusts a private authority only when SVC_EXTRA_CA_CERTS names it', async () => {
    const authority = makeTlsAuthority();
    const idp = await fakeIdp({ tls: authority });
    const settings = settingsOf(idp);
    expect(await problemsOf(settings)).toEqual([expect.stringContaining('SVC_EXTRA_CA_CERTS')]);

    const providers = await connect([settings], [authority.ca]);
    const url = await providers.begin('corp', { redirectTo: '/', browser: BROWSER });
    const { identity } = await complete(providers, { url: idp.authorize(url), browser: BROWSER });
    expect(identity.issuer).toBe(idp.issuer);
  });

  it('lists the providers in configured order, and the origins of their forms once each', async () => {
    const [one, two] = await Promise.all([fakeIdp(), fakeIdp()]);
    const providers = await connect([
      settingsOf(two, 'zeta'),
      settingsOf(one, 'alpha'),
      settingsOf(two, 'mid'),
    ]);
    expect(providers.list().map(({ slug, name, issuer }) => [slug, name, issuer])).toEqual([
      ['zeta', 'Sign in with zeta', two.issuer],
      ['alpha', 'Sign in with alpha', one.issuer],
      ['mid', 'Sign in with mid', two.issuer],
    ]);
    expect(providers.authorizationEndpointOrigins()).toEqual([two.origin, one.origin]);
  });
});
