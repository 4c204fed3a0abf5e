import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { startSamlIdp, postResponse, type TestSamlIdp } from '../support/saml-idp.js';

describe('sign-in at a SAML provider', () => {
  let app: TestApp;
  let corp: TestSamlIdp;
  let strict: TestSamlIdp;
  beforeAll(async () => {
    const baseUrl = () => app.baseUrl;
    corp = await startSamlIdp({ baseUrl, slug: 'corp' });
    strict = await startSamlIdp({
      baseUrl,
      slug: 'strict-idp',
      wantsSignedRequests: true,
    });
    app = await startTestApp({
      environment: {
        SVC_IDPS: 'corp,demo,strict-idp',
        SVC_IDP_CORP_TYPE: 'saml',
        SVC_IDP_CORP_METADATA_URL: corp.metadataUrl,
        SVC_IDP_STRICT_IDP_TYPE: 'saml',
        SVC_IDP_STRICT_IDP_METADATA_URL: strict.metadataUrl,
      },
    });
  });
  afterAll(async () => {
    await app.close();
    await Promise.all([corp.close(), strict.close()]);
  });

  it('signs a person in, enrolls a key and logs in', async () => {
    const client = app.client();
    const answer = await postResponse(
      client,
      await corp.answer(client, { nameId: 'Ada@Engine.test' }),
    );
    expect(answer.status).toBe(303);
    const page = await client.get(answer.headers.get('location') ?? '');
    expect([page.status, page.headers.get('location')]).toEqual([
      303,
      expect.stringContaining('/enroll?'),
    ]);
    const key = app.newKey();
    expect((await client.enroll(key)).status).toBe(200);
    expect((await client.logIn(key)).status).toBe(200);
  });
});
