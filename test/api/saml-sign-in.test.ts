import { createVerify, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { postResponse, startSamlIdp, type TestSamlIdp } from '../support/saml-idp.js';
import { rows } from '../support/rows.js';

describe('sign-in at a SAML provider', () => {
  let app: TestApp;
  let corp: TestSamlIdp;
  let strict: TestSamlIdp;
  beforeAll(async () => {
    const baseUrl = () => app.baseUrl;
    corp = await startSamlIdp({ baseUrl, slug: 'corp' });
    strict = await startSamlIdp({ baseUrl, slug: 'strict-idp', wantsSignedRequests: true });
    app = await startTestApp({
      environment: {
        SVC_IDPS: 'corp,demo,strict-idp',
        SVC_IDP_CORP_TYPE: 'saml',
        SVC_IDP_CORP_METADATA_URL: corp.metadataUrl,
        SVC_IDP_STRICT_IDP_TYPE: 'saml',
        SVC_IDP_STRICT_IDP_METADATA_URL: strict.metadataUrl,
        SVC_IDP_STRICT_IDP_SP_ENTITY_ID: 'urn:svc:a&b',
        SVC_IDP_STRICT_IDP_EMAIL_ATTRIBUTE: 'mail',
      },
    });
  });
  afterAll(async () => {
    await app.close();
    await Promise.all([corp.close(), strict.close()]);
  });

  const refusalsOf = (provider: string) =>
    rows<{ details: Record<string, unknown> }>(
      app.dataSource,
      `SELECT details FROM audit_events WHERE type = 'upstream_login_refused' AND details ->> 'provider' = $1 ORDER BY id`,
      [provider],
    );

  it('signs a person in, enrolls a key and logs in', async () => {
    const client = app.client();
    const { id } = await corp.request(client, '/account/keys');
    const response = corp.respond({ requestId: id, nameId: 'Ada@Engine.test' });
    const answer = await postResponse(client, response);
    expect(answer.status).toBe(303);
    const location = answer.headers.get('location') ?? '';
    expect(location).not.toContain(response.slice(0, 40));

    const page = await client.get(location);
    const next = new URL(page.headers.get('location') ?? '');
    expect([page.status, next.pathname]).toEqual([303, '/enroll']);
    expect(next.searchParams.get('redirect_to')).toMatch(/\/keys$/);
    const key = app.newKey();
    expect((await client.enroll(key)).status).toBe(200);
    expect((await client.logIn(key)).status).toBe(200);
    const bound = await rows(
      app.dataSource,
      'SELECT issuer, subject FROM identities i JOIN users u ON u.id = i.user_id WHERE u.email = $1',
      ['ada@engine.test'],
    );
    expect(bound).toEqual([{ issuer: corp.entityId, subject: 'ada@engine.test' }]);
  });

  it('lists providers of both protocols in the configured order, and allows forms to lead there', async () => {
    const page = await app.client().get('/login');
    const slugs = [...page.text.matchAll(/\/login\?provider=([a-z-]+)/g)].map(([, slug]) => slug);
    expect(slugs).toEqual(['corp', 'demo', 'strict-idp']);
    const policy = page.headers.get('content-security-policy') ?? '';
    for (const idp of [corp, strict]) expect(policy).toContain(new URL(idp.metadataUrl).origin);
  });

  it('sends a request that names no page and no secret, and a kept state for its end alone', async () => {
    const client = app.client();
    const { xml, parameters } = await corp.request(client, '/account/keys?secret=1');
    expect([...parameters.keys()]).toEqual(['tenant', 'SAMLRequest']);
    expect(xml).toContain(`AssertionConsumerServiceURL="${app.baseUrl}/saml/acs"`);
    expect(xml).not.toMatch(/ForceAuthn|secret|RequestedAuthnContext/);
    const login = await app.client().get('/login?provider=corp');
    const kept = login.headers.getSetCookie().filter((line) => line.startsWith('svc_sign_in_'));
    expect(kept).toEqual([
      expect.stringMatching(/; Max-Age=600; Path=\/saml\/complete; HttpOnly; SameSite=Lax$/),
    ]);
  });

  it('keeps a long address after the sign-in out of the cookie', async () => {
    const login = await app
      .client()
      .get(
        `/login?provider=corp&redirect_to=${encodeURIComponent(`/account/keys?${'ü'.repeat(1500)}`)}`,
      );
    const [kept = ''] = login.headers.getSetCookie().filter((line) => /svc_sign_in_/.test(line));
    expect(kept.length).toBeGreaterThan(100);
    expect(kept.length).toBeLessThan(4096);
  });

  it('signs requests where the provider wants it, with a published certificate', async () => {
    const metadata = await app.client().get('/saml/metadata?provider=strict-idp');
    const [, certificate = ''] = /X509Certificate>([^<]+)</.exec(metadata.text) ?? [];
    const { publicKey } = new X509Certificate(Buffer.from(certificate, 'base64'));
    const client = app.client();
    const login = await client.get('/login?provider=strict-idp');
    const [, query = ''] = (login.headers.get('location') ?? '').split('?tenant=7&');
    const [signed = '', signature = ''] = query.split('&Signature=');
    expect(signed).toContain(
      'SigAlg=http%3A%2F%2Fwww.w3.org%2F2001%2F04%2Fxmldsig-more%23rsa-sha256',
    );
    const value = Buffer.from(decodeURIComponent(signature), 'base64');
    expect(createVerify('sha256').update(signed).verify(publicKey, value)).toBe(true);
  });

  it('publishes metadata for every provider', async () => {
    const own = await app.client().get('/saml/metadata');
    expect(own.headers.get('content-type')).toMatch(/^application\/samlmetadata\+xml/);
    expect(own.text).toContain(`entityID="${app.baseUrl}/saml/metadata"`);
    expect(own.text).toContain('AuthnRequestsSigned="false" WantAssertionsSigned="true"');
    const strictly = await app.client().get('/saml/metadata?provider=strict-idp');
    expect(strictly.text).toContain('entityID="urn:svc:a&amp;b"');
    expect(strictly.text).toContain('AuthnRequestsSigned="true"');
    for (const slug of ['demo', 'unknown']) {
      expect((await app.client().get(`/saml/metadata?provider=${slug}`)).status).toBe(404);
    }
  });

  it('names first the format of the NameID that it needs: a provider imports that one', async () => {
    const formatsOf = async (slug: string) => {
      const { text } = await app.client().get(`/saml/metadata?provider=${slug}`);
      return [...text.matchAll(/NameIDFormat>[^<]*:(\w+)</g)].map(([, format]) => format);
    };
    expect(await formatsOf('corp')).toEqual(['emailAddress', 'persistent']);
    expect(await formatsOf('strict-idp')).toEqual(['persistent', 'emailAddress']);
  });

  it('of another browser, or without its cookies, is refused', async () => {
    const victim = app.client();
    const answer = await postResponse(victim, await corp.answer(victim));
    const location = answer.headers.get('location') ?? '';
    const attacker = app.client();
    await corp.request(attacker);
    for (const client of [attacker, app.client()]) {
      const page = await client.get(location);
      expect([page.status, client.cookie('svc_session')]).toEqual([400, undefined]);
    }
    expect((await victim.get(location)).status).toBe(303);
    const again = await victim.get(location);
    expect([again.status, again.text]).toEqual([400, expect.stringContaining('used before')]);
  });

  it('is refused and audited once where a signed assertion is not acceptable', async () => {
    const client = app.client();
    const before = (await refusalsOf('corp')).length;
    const response = await corp.answer(client, { audience: 'https://other.test' });
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => postResponse(app.client(), response)),
    );
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400]);
    const refused = await refusalsOf('corp');
    expect(refused.slice(before).map(({ details }) => details['code'])).toEqual(['sign_in_failed']);
  });

  it('leaves no audit event of a response that no provider signed, and no text of responses in the log', async () => {
    const client = app.client();
    const response = await corp.answer(client, { nameId: 'planted-name@engine.test' });
    const forged = Buffer.from(
      Buffer.from(response, 'base64').toString().replace('planted-name', 'planted-other'),
    ).toString('base64');
    const before = (await refusalsOf('corp')).length;
    const answer = await postResponse(client, forged);
    expect([answer.status, answer.text.includes('planted')]).toEqual([400, false]);
    expect((await refusalsOf('corp')).length).toBe(before);
    expect((await postResponse(client, response)).status).toBe(303);
    const log = app.log.join('');
    expect(log).toContain('A sign-in failed upstream');
    expect(log).not.toMatch(/planted-|SAMLResponse=|<saml/);
    expect(log).not.toContain(response.slice(0, 60));
  });

  it.each([
    ['without the field', ''],
    ['that is no base64', 'SAMLResponse=%3Cxml%3E'],
    ['that is empty', 'SAMLResponse='],
    ['that is a form with the field twice', 'SAMLResponse=YQ&SAMLResponse=YQ'],
  ])('answers a post %s with a page', async (_, body) => {
    const answer = await app.client().post('/saml/acs', body, {
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: 'null' },
    });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      400,
      expect.stringContaining('text/html'),
    ]);
  });
});
